// actors/membership/view_stage.hpp - where a node stands between two views, in the words of log lines, the page and `status`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace poseidon {

enum class view_stage : std::uint8_t {
  forming,    ///< no view has begun here yet
  training,   ///< in the view that holds
  draining,   ///< up to the clock of a planned change
  drained,    ///< it has trained up to there, and waits for the next view
  freezing,   ///< a member is lost: what computes gives its work up, and links fall silent
  frozen,     ///< nothing of it computes, and what it has said of its version stays true
  releasing,  ///< the next view is known: solver state is given away
  ending,     ///< the graph of the view before ends
  building    ///< the graph of the next view stands, or is built; that view has not begun
};

inline constexpr std::string_view names_of_stages[] = {"forming",   "training", "draining",
                                                       "drained",   "freezing", "frozen",
                                                       "releasing", "ending",   "building"};
[[nodiscard]] constexpr std::string_view to_string(view_stage at) {
  return names_of_stages[static_cast<std::size_t>(at)];
}

}  // namespace poseidon
