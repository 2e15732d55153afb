// actors/links/link_writer.hpp
//
// What goes out on a connection next, and when? Frames wait by priority and go out in writes of at most 256 KiB, within the
// line's rate and the budget of frames with a payload. network_link calls it and does what each step asks for.
#pragma once
#include "actors/links/frame_queue.hpp"
#include "actors/links/link_options.hpp"
#include "actors/links/outbox.hpp"
#include "actors/links/rate_bucket.hpp"
#include "actors/links/stall_watch.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace poseidon {

class link_writer {
 public:
  /// `options` outlive this.
  explicit link_writer(const link_options& options);

  void push(send_frame f) { queue_.push(std::move(f)); }
  /// Past the queue and the budget: a few bytes between two writes.
  void put_now(frame_header h, const frame_writer& self);
  /// Forgets what belongs to a view and waits.
  void drop_what_waits();
  /// Forgets what the leader of a view asks for its page.
  void drop_what_is_for_the_page();
  /// Gigabytes may wait of what programs share, and a run that ends before they have arrived has failed.
  void drop_shared_state();
  /// What has been begun is still to be written.
  [[nodiscard]] bool is_writing() const { return queue_.has_begun() || !outbox_.empty(); }
  [[nodiscard]] bool empty() const { return queue_.empty() && outbox_.empty(); }

  struct step {
    /// Something waits: to be called again after this time.
    std::optional<std::chrono::milliseconds> again = {};
    /// The connection is of no more use, and why. An empty text: the receiver finds out.
    std::optional<std::string> broken = {};
  };
  /// One write, of what is most urgent now. `closing`: what waits is sent without regard to the budget, because a link that
  /// closes has nothing left to plan.
  [[nodiscard]] step write(const link_binding& b, bool closing);
  /// Writes a heartbeat if the link has been idle. While data waits to be written, a heartbeat would add nothing.
  [[nodiscard]] step write_heartbeat(const link_binding& b);

 private:
  [[nodiscard]] std::optional<frame_queue::piece> next_piece(bool closing);
  void fill_outbox(const frame_writer& self, bool closing);
  [[nodiscard]] step write_outbox(const link_binding& b);
  void written(seat_id peer);

  const link_options& options_;
  frame_queue queue_;
  rate_bucket line_, budget_;  // of all that is written; of frames with a payload
  outbox outbox_;
  stall_watch stall_;
  std::chrono::steady_clock::time_point last_write_;
};

}  // namespace poseidon
