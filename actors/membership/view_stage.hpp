// actors/membership/view_stage.hpp - where a node stands between two views, in the words of log lines, the page and `status`.
#pragma once
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

[[nodiscard]] constexpr std::string_view to_string(view_stage at) {
  switch (at) {
    case view_stage::forming:
      return "forming";
    case view_stage::training:
      return "training";
    case view_stage::draining:
      return "draining";
    case view_stage::drained:
      return "drained";
    case view_stage::freezing:
      return "freezing";
    case view_stage::frozen:
      return "frozen";
    case view_stage::releasing:
      return "releasing";
    case view_stage::ending:
      return "ending";
    case view_stage::building:
      return "building";
  }
  return "";
}

}  // namespace poseidon
