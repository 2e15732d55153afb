// tests/actors/membership/view_search.hpp
//
// Every state that a model cluster of three nodes can reach, by breadth. What a node does is computed once for each of its own
// states and each event, so that a state of the cluster is a handful of numbers. What has been sent may arrive at any time, in
// any order, again, or never: a post stays for as long as it can still change or teach its receiver anything.
//
// What a node knows of others, it knows at a time of its own. So each event of a node is tried with all that it can know then:
// whom it hears when it says so (a doubt is another node that lives and is not heard: it sleeps, is late, or a link is cut),
// and whether one is proved dead. A crash that no node has noticed yet is a node that does nothing, so a node crashes at the
// moment when another one proves it, or in the midst of telling what it has decided: then one is told and the other is not.
#pragma once
#include "tests/actors/membership/view_model.hpp"

#include <array>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace poseidon::view_model {

inline constexpr std::size_t any_number = 255;

struct search_limits {
  std::uint8_t newest = 2;  ///< no version above it is made
  /// By epoch, of all nodes together; views of a later epoch do nothing. Refusals are not searched (node::can_use), which
  /// leaves nothing out as long as these are two at most: a third ballot would have to learn a higher round from them.
  std::array<std::uint8_t, 3> ballots{0, 2, 2};
  std::size_t crashes = 1;
  /// How many pairs of nodes are said not to hear each other, over all testimonies.
  std::size_t doubts = any_number;
  seat_mask members = 7;    ///< of view 1
  seat_mask witnesses = 0;  ///< of these
  /// False: refusals, posts that cannot matter any more and chapters that are over stay in the states. So a test can see that
  /// nothing is lost by taking them away.
  bool takes_away = true;
  /// Only an invariant whose name begins with this counts as violated.
  std::string looks_for;
  std::size_t most_states = 20'000'000;
  bool collects_fates = false;
};

/// The view and the version of each node, and whether it is frozen, left out or dead.
struct fate {
  std::array<chapter, 3> nodes;
  seat_mask out = 0, dead = 0;
  auto operator<=>(const fate&) const = default;
};

struct search_result {
  std::string violated;            ///< empty: nothing
  std::vector<std::string> trace;  ///< the events that lead there
  std::size_t states = 0, node_states = 0, posts = 0, sets_of_posts = 0;
  bool complete = false;  ///< all states have been seen
  std::set<fate> fates;   ///< of all states, if limits.collects_fates
};

/// View 1 has version 0. Seats that are not among its members are empty.
[[nodiscard]] search_result search(const search_limits& limits, mutation broken);
/// "3 nodes, 2 epochs, ..."
[[nodiscard]] std::string to_string(const search_limits& limits);

}  // namespace poseidon::view_model
