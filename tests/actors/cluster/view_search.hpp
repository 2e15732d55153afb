// tests/actors/cluster/view_search.hpp
//
// Every state that a small model cluster can reach, by breadth: what a node does is computed once for each of its own states
// and each event, so that a state of the cluster is a handful of numbers. What has been sent is never taken away: each post
// may arrive at any time, in any order, again, or never.
#pragma once
#include "tests/actors/cluster/view_model.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace poseidon::view_model {

struct search_limits {
  std::uint8_t newest = 2;                       ///< no version above it is made
  std::array<std::uint8_t, 3> ballots{0, 2, 2};  ///< by epoch; views of a later epoch do nothing
  std::size_t crashes = 1, sleeps = 1, cuts = 1;
  /// A cut makes one node deaf for the other, and not the other for the one.
  bool one_sided = false;
  std::size_t most_states = 20'000'000;
};

struct search_result {
  std::string violated;            ///< empty: nothing
  std::vector<std::string> trace;  ///< the events that lead there
  std::size_t states = 0, node_states = 0, posts = 0;
  bool complete = false;  ///< all states have been seen
};

/// Three members of view 1 with version 0.
[[nodiscard]] search_result search(const search_limits& limits, mutation broken);

}  // namespace poseidon::view_model
