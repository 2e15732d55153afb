// actors/every_actor.hpp - the list of all actor classes, from which the type graph is drawn.
// A class that is missing here is missing in docs/architecture.md: add the header and the name.
#pragma once
#include "actors/actor_graph.hpp"

namespace poseidon {

using every_actor = actor_list<>;

}  // namespace poseidon
