// actors/node/state_left.hpp - is the solver state that a view needs on nodes that go on?
#pragma once
#include "actors/node/node_core.hpp"

#include <string>
#include <vector>

namespace poseidon {

/// The layers whose solver state is gone, or a part of it, in the net's order, each once: of a chunk, its owner is lost, and all that keep
/// a copy.
[[nodiscard]] std::vector<std::string> layers_without_state(const node_core& core,
                                                            const frames::next_view& next);

}  // namespace poseidon
