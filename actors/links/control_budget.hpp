// actors/links/control_budget.hpp
//
// How many control frames a peer may send: the honest ones come a few times a second, so a peer that goes beyond this budget
// is broken or hostile, and its link ends before what it sends fills mailboxes. Frames that carry a run's values, and reports
// of clocks, are bounded by their order instead (peer_window); heartbeats and probes reach no mailbox. The end of a round of probes
// does, but not its bytes, of which a fast line takes many.
#pragma once
#include "messages/frames.hpp"

#include <chrono>
#include <cstddef>

namespace poseidon {

/// One per link; called by its receiver's thread, which passes the time.
class control_budget {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  // A whole budget lasts a node through any moment, say while it compiles its nets. Refilled, a second.
  // So many snapshots are possible, too, one after each iteration of a tiny net.
  static constexpr double most_frames = 1000, frames_s = 1000;
  static constexpr double most_bytes = 32u << 20, bytes_s = 1u << 20;

  explicit control_budget(time_point now) : at_(now) {}

  /// Whether a frame is one of those that are counted here.
  [[nodiscard]] static bool counts(const frame_header& h);
  /// `bytes`: of the frame, header and payload.
  /// Errors   bad_frame: this frame is beyond the budget.
  void admit(const frame_header& h, std::size_t bytes, time_point now);

 private:
  double frames_ = most_frames, bytes_ = most_bytes;  // still allowed
  time_point at_;
};

}  // namespace poseidon
