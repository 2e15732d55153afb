// actors/every_actor.hpp - the list of all actor classes, from which the type graph is drawn.
// A class that is missing here is missing in docs/architecture.md: tools/check looks for that.
#pragma once
#include "actors/client/caller.hpp"
#include "actors/cluster/seeker.hpp"
#include "actors/links/link_acceptor.hpp"
#include "actors/links/link_receiver.hpp"
#include "actors/links/network_link.hpp"
#include "actors/node/node.hpp"
#include "actors/node/witness.hpp"
#include "actors/parameters/checkpointer.hpp"
#include "actors/parameters/factor_broadcast.hpp"
#include "actors/parameters/gradient_push.hpp"
#include "actors/parameters/lowrank_exchange.hpp"
#include "actors/parameters/server_shard.hpp"
#include "actors/parameters/state_keeper.hpp"
#include "actors/routes/protocol_selector.hpp"
#include "actors/telemetry/telemetry.hpp"
#include "actors/telemetry/type_graph.hpp"
#include "actors/training/copy_out.hpp"
#include "actors/training/data_source.hpp"
#include "actors/training/layer.hpp"
#include "actors/training/solver.hpp"
#include "actors/training/stream.hpp"

namespace poseidon {

using every_actor = actor_list<caller, checkpointer, copy_out, data_source, factor_broadcast,
                               gradient_push, layer, link_acceptor, link_receiver, lowrank_exchange,
                               network_link, node, protocol_selector, seeker, server_shard, solver,
                               state_keeper, stream, telemetry, witness>;

}  // namespace poseidon
