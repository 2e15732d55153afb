// messages/node_stage.hpp - where a node stands, in the words of log lines, the page and `status`, and the sets of stages in which it may
// hear a frame (frame_table.hpp). actors/membership/view_change.hpp shows how one leads to the next.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace poseidon {

enum class node_stage : std::uint8_t {
  starting,    ///< it has no member yet
  gathering,   ///< nodes join, until there is a view
  building,    ///< the first graph of this node is built, and its links are bound
  waiting,     ///< this node is ready, others are not
  discarding,  ///< another view takes the place of the one it came with: the graph of that one ends
  training,    ///< in the view that holds
  draining,    ///< up to the clock of a planned change
  drained,     ///< it has trained up to there, and waits for the next view
  freezing,    ///< a member is lost: what computes gives its work up, and links fall silent
  frozen,      ///< nothing of it computes, and what it has said of its version stays true
  releasing,   ///< the next view is known: solver state is given away
  ending,      ///< the graph of the view before ends
  rebuilding,  ///< as building, for the next view
  resuming,    ///< as waiting, for the next view
  parting,  ///< the next view is without this node, which waits until it can give its solver state away
  failing,  ///< what this node has is written, then it ends
  ended
};

inline constexpr std::array<std::string_view, 17> names_of_stages{
    "starting",   "gathering", "building", "waiting", "discarding", "training",
    "draining",   "drained",   "freezing", "frozen",  "releasing",  "ending",
    "rebuilding", "resuming",  "parting",  "failing", "ended"};
[[nodiscard]] constexpr std::string_view to_string(node_stage s) {
  return names_of_stages[static_cast<std::size_t>(s)];
}

/// A bit for each stage.
enum class stage_set : std::uint32_t {};
[[nodiscard]] constexpr stage_set operator|(stage_set a, stage_set b) {
  return static_cast<stage_set>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
template <class... S>
[[nodiscard]] constexpr stage_set during(S... s) {
  return static_cast<stage_set>(((1u << static_cast<unsigned>(s)) | ... | 0u));
}
[[nodiscard]] constexpr bool contains(stage_set set, node_stage s) {
  return (static_cast<unsigned>(set) >> static_cast<unsigned>(s) & 1u) != 0;
}

namespace stages {
using enum node_stage;
inline constexpr auto never = during();
inline constexpr auto forming = during(gathering);
/// In the view that holds, computing or not.
inline constexpr auto in_view = during(training, draining, drained, freezing, frozen);
inline constexpr auto computing = during(training, draining, drained);
/// It came with a view that has not begun here.
inline constexpr auto coming = during(building, waiting, discarding);
/// From the end of that view to the beginning of the next one.
inline constexpr auto between_views = during(releasing, ending, rebuilding, resuming);
/// From start_training on. A node that is ahead may speak to one that still changes.
inline constexpr auto running = in_view | between_views;
/// A graph is being built, or soon: nothing is heard of what was asked for in the view before.
inline constexpr auto without_graph = during(building, discarding, releasing, ending, rebuilding);
inline constexpr auto getting_ready = between_views | coming;
inline constexpr auto of_member = getting_ready | running;
inline constexpr auto taking_part = of_member | during(parting);
inline constexpr auto whole_run = forming | of_member;
}  // namespace stages

}  // namespace poseidon
