// actors/every_actor.hpp - the list of all actor classes, from which the type graph is drawn.
// A class that is missing here is missing in docs/architecture.md: tools/check looks for that.
#pragma once
#include "actors/actor_graph.hpp"
#include "actors/checkpointer.hpp"
#include "actors/coordinator.hpp"
#include "actors/copy_out.hpp"
#include "actors/data_source.hpp"
#include "actors/factor_broadcast.hpp"
#include "actors/gradient_push.hpp"
#include "actors/layer.hpp"
#include "actors/link_acceptor.hpp"
#include "actors/link_receiver.hpp"
#include "actors/network_link.hpp"
#include "actors/node.hpp"
#include "actors/protocol_selector.hpp"
#include "actors/server_shard.hpp"
#include "actors/solver.hpp"
#include "actors/stream.hpp"
#include "actors/telemetry.hpp"

namespace poseidon {

using every_actor = actor_list<checkpointer, coordinator, copy_out, data_source, factor_broadcast,
                               gradient_push, layer, link_acceptor, link_receiver, network_link,
                               node, protocol_selector, server_shard, solver, stream, telemetry>;

}  // namespace poseidon
