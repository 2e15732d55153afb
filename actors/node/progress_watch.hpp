// actors/node/progress_watch.hpp
//
// Does this node's training get on? A peer may be alive, and send no gradient for ever: no link ends, and everybody waits. The
// node ends a run in which for a long time no actor that trains has had anything to do. A part of `node`.
#pragma once
#include "actors/node/node_core.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace poseidon {

class progress_watch {
 public:
  using clock = std::chrono::steady_clock;
  /// How long a run that has been told to end may stand still.
  static constexpr std::chrono::seconds at_the_end{20};

  explicit progress_watch(node_core& core) : core_(core) {}

  /// When to look again; nothing: there is no limit.
  [[nodiscard]] std::optional<std::chrono::milliseconds> interval() const;
  /// The user has asked for the end.
  void hurry() { hurried_ = true; }
  /// `paused`: this node waits for members that it does not hear. Then what its actors do is no progress.
  /// Why the run is given up, with since when each peer has sent no values; empty: it gets on, or is to wait.
  [[nodiscard]] std::optional<std::string> look(clock::time_point now, bool paused);

 private:
  [[nodiscard]] std::chrono::milliseconds limit() const;
  [[nodiscard]] std::optional<std::string> why_programs_stand_still(const program& around,
                                                                    clock::time_point now,
                                                                    clock::duration still) const;

  node_core& core_;
  bool hurried_ = false;
  std::uint64_t done_ = 0;  // messages that training actors have handled
  std::optional<clock::time_point> since_;
};

}  // namespace poseidon
