// actors/links/network_link.hpp
//
// One authenticated connection to one other node: frames out by priority and budget, frames in to their
// actors. Two actors with a thread each, because a sender that waits for a peer that does not read must not
// keep its own node from reading: network_link writes, its link_receiver (link_receiver.hpp) reads. In the
// graph both are "network_link". Spawn them with open_link().
//
// Accepts  send_frame      from any actor     copied nowhere: the payload's owner lives until it is written
//          close_link      from node          sends what waits, says goodbye, then link_lost on purpose
//          bind_link       from node          ids of the two nodes, limits, routes; answered by link_bound
//          receiver_ended  from link_receiver exactly once; why there is nothing more to read
//          pump            from itself        one write of at most 256 KiB, so that the next one is chosen among all
//                                             that has arrived; returns, unfinished, if the peer takes nothing.
//                                             Delayed by a rate or a budget
//          link_tick       from itself        heartbeats while idle
// Sends    link_bound      to node            once per bind_link
//          link_flow       to node            a few times a second, once it is bound
//          link_lost       to node            exactly once, as its last message
// State    frame_queue: what waits, by priority. Detached: it blocks in write.
// Fails    never by itself: every error of the connection ends as link_lost.
#pragma once
#include "actors/core/actor.hpp"
#include "actors/links/frame_queue.hpp"
#include "actors/links/link_binding.hpp"
#include "actors/links/link_counters.hpp"
#include "actors/links/link_event.hpp"
#include "actors/links/outbox.hpp"
#include "actors/links/rate_bucket.hpp"
#include "actors/links/stall_watch.hpp"
#include "messages/link.hpp"
#include "messages/wire/buffer_pool.hpp"
#include "messages/wire/socket.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace poseidon {

/// To a network_link: use this binding from now on. Frames that arrive before it are checked against the earlier
/// binding, so a message that lets a peer send (member_ready, through another link) has to wait for link_bound.
struct bind_link {
  std::shared_ptr<const link_binding> binding;
};

struct link_options {
  std::shared_ptr<tcp_socket> socket;  ///< after the handshake
  std::string address;                 ///< the peer's, as users know it: "10.0.0.7:7600"
  link_binding binding;
  /// The peer opens its half when it has the run's view and has built its nets; from its first word on
  /// the silence limit holds.
  std::chrono::milliseconds first_word_limit{120000};
  std::chrono::milliseconds silence_limit{2000};
  std::chrono::milliseconds heartbeat{250};
  /// The link gives up a peer that takes nothing for this long while data waits for it, even if the
  /// peer can be heard: its reading half is stuck, or the network carries one direction only.
  std::chrono::milliseconds stall_limit{10000};
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  double rate_mbit_s = 0;  ///< at most this much is written; 0: as much as the line takes
  /// At most this much of frames with a payload; 0: no limit. Frames without one are not counted and do not wait for it.
  double budget_mbit_s = 0;
  std::size_t pool_bytes = link_pool_bytes;
  link_trace trace;
  std::shared_ptr<link_counters> counters = std::make_shared<link_counters>();
};

/// "worker 2 (10.0.0.7:7600)"
[[nodiscard]] std::string peer_name(worker_id peer, const std::string& address);
[[nodiscard]] std::string seconds_text(std::chrono::steady_clock::duration d);  ///< "2.5 s"

struct pump {
  std::uint64_t turn = 0;  ///< only the last one asked for counts
};
struct link_tick {};
struct receiver_ended {
  std::string why;
  std::optional<std::string> goodbye;  ///< the peer's, with its reason; empty reason: as planned
};

/// What both halves of a link share.
struct link_shared;

class network_link : public actor<network_link> {
 public:
  static constexpr const char* type_name = "network_link";
  using accepts = messages<send_frame, close_link, bind_link, receiver_ended, pump, link_tick>;
  using sends = messages<link_bound, link_flow, link_lost>;

  network_link(actor_context context, std::shared_ptr<link_shared> shared);
  void started();
  void on_exit() override;

  void on(const send_frame& m);
  void on(const close_link& m);
  void on(const bind_link& m);
  void on(const receiver_ended& m);
  void on(const pump& m);
  void on(const link_tick&);

 private:
  // open -> closing (close_link) -> said_goodbye (all written) -> over (receiver_ended)
  // open, closing -> broken (a write failed) -> over
  enum class phase { open, closing, said_goodbye, broken, over };

  void want_pump(std::chrono::milliseconds delay = std::chrono::milliseconds{0});
  [[nodiscard]] std::optional<frame_queue::piece> next_piece();
  void fill_outbox();
  void write_outbox();
  void written();
  void put_now(frame_header h);
  void break_off(std::string why);
  void said_goodbye();
  void finish(const receiver_ended& m);

  std::shared_ptr<link_shared> shared_;
  frame_queue queue_;
  rate_bucket line_, budget_;  // of all that is written; of frames with a payload
  outbox outbox_;
  stall_watch stall_;
  phase phase_ = phase::open;
  std::optional<std::chrono::steady_clock::time_point> pump_due_;
  std::uint64_t pump_turn_ = 0;
  bool goodbye_put_ = false;  // in the outbox, or written
  std::string close_reason_;
  std::string own_fault_;  // why this node broke the link off: goes before the receiver's reason
  std::optional<receiver_ended> peer_done_;  // the peer has said goodbye, this node still writes
  std::chrono::steady_clock::time_point last_write_, goodbye_at_;
};

/// Spawns both halves; `name` is the graph's, say "network_link 2". The link ends by close_link, or when the
/// connection does.
[[nodiscard]] handle<network_link> open_link(caf::actor_system& system, edge_book& book,
                                             const std::string& name, link_options options);

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::bind_link)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::receiver_ended)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::pump)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::link_tick)
