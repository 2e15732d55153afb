// actors/node/state_left.hpp - is the solver state that a view needs on nodes that go on?
#pragma once
#include "actors/node/node_core.hpp"

#include <string>
#include <vector>

namespace poseidon {

/// Each chunk's owner, or one that keeps a copy of its state, is not lost.
[[nodiscard]] bool has_all_state(const node_core& core, const frames::next_view& next);

/// The layers whose solver state is gone, or a part of it, in the net's order, each once.
[[nodiscard]] std::vector<std::string> layers_without_state(const node_core& core,
                                                            const frames::next_view& next);

/// `next` begins with the version that this view began with, and all its members came with this view: they cannot know that they have
/// all solver state of it. Before iteration 0 there is none.
[[nodiscard]] bool is_of_newcomers_alone(const node_core& core, const frames::next_view& next);

}  // namespace poseidon
