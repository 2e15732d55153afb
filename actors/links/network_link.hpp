// actors/links/network_link.hpp
//
// One authenticated connection to one other node: frames out by priority and budget, frames in to their
// actors. Two actors with a thread each, because a sender that waits for a peer that does not read must not
// keep its own node from reading: network_link writes, its link_receiver (link_receiver.hpp) reads. In the
// graph both are "network_link". Spawn them with open_link().
//
// Accepts  send_frame      from any actor     copied nowhere: the payload's owner lives until it is written
//          close_link      from node          sends what waits, says goodbye, then link_lost on purpose
//          bind_link       from node          ids of the two nodes, limits, routes; answered by link_bound when nothing is read any
//                                             more to where the earlier binding put it; where members are lost, when nothing of
//                                             the earlier view is being written either
//          older_frames_ended   from link_receiver
//          receiver_ended  from link_receiver exactly once; why there is nothing more to read
//          pump            from itself        one write of at most 256 KiB, so that the next one is chosen among all
//                                             that has arrived; returns, unfinished, if the peer takes nothing.
//                                             Delayed by a rate or a budget
//          link_tick       from itself        heartbeats while idle
// Sends    link_bound      to node            once per bind_link
//          link_flow       to node            a few times a second, once it is bound
//          link_lost       to node            exactly once, as its last message
// State    link_writer: what waits, by priority. Detached: it blocks in write.
// Fails    never by itself: every error of the connection ends as link_lost.
#pragma once
#include "actors/core/actor.hpp"
#include "actors/links/link_options.hpp"
#include "actors/links/link_writer.hpp"
#include "messages/link.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace poseidon {

/// To a network_link: use this binding from now on. Frames that arrive before it are checked against the earlier
/// binding, so a message that lets a peer send (member_ready, through another link) has to wait for link_bound.
struct bind_link {
  std::shared_ptr<const link_binding> binding;
};

struct pump {
  std::uint64_t turn = 0;  ///< only the last one asked for counts
};
struct link_tick {};
/// link_receiver -> network_link: no frame is being read any more that began before the last bind_link.
struct older_frames_ended {};
struct receiver_ended {
  std::string why;
  std::optional<frames::goodbye> goodbye;  ///< the peer's
  bool silent = false;                     ///< the peer was not heard for too long
};

/// What both halves of a link share.
struct link_shared;

class network_link : public actor<network_link> {
 public:
  static constexpr const char* type_name = "network_link";
  using accepts = messages<send_frame, close_link, bind_link, older_frames_ended, receiver_ended,
                           pump, link_tick>;
  using sends = messages<link_bound, link_flow, link_lost>;

  network_link(actor_context context, std::shared_ptr<link_shared> shared);
  void started();
  void ended();

  void on(const send_frame& m);
  void on(const close_link& m);
  void on(const bind_link& m);
  void on(const older_frames_ended&);
  void on(const receiver_ended& m);
  void on(const pump& m);
  void on(const link_tick&);

 private:
  // open -> closing (close_link) -> said_goodbye (all written) -> over (receiver_ended)
  // open, closing -> broken (a write failed) -> over
  enum class phase { open, closing, said_goodbye, broken, over };

  void say_bound();
  void want_pump(std::chrono::milliseconds delay = std::chrono::milliseconds{0});
  /// Does what the step asks for. Returns  whether it asks for anything.
  bool act(const link_writer::step& s);
  void break_off(std::string why);
  void said_goodbye();
  void finish(const receiver_ended& m);

  std::shared_ptr<link_shared> shared_;
  link_writer writer_;
  phase phase_ = phase::open;
  std::optional<std::chrono::steady_clock::time_point> pump_due_;
  std::uint64_t pump_turn_ = 0;
  bool binds_ = false;        // link_bound is to be said
  bool reads_older_ = false;  // frames that began before
  bool goodbye_put_ = false;  // waits in writer_, or is written
  frames::goodbye goodbye_;
  std::string own_fault_;  // why this node broke the link off: goes before the receiver's reason
  std::optional<receiver_ended> peer_done_;  // the peer has said goodbye, this node still writes
  std::chrono::steady_clock::time_point goodbye_at_;
  std::chrono::steady_clock::time_point flow_at_{};
};

/// Spawns both halves; `name` is the graph's, say "network_link 2". The link ends by close_link, or when the
/// connection does.
[[nodiscard]] handle<network_link> open_link(caf::actor_system& system, edge_book& book,
                                             const std::string& name, link_options options);

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::bind_link)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::receiver_ended)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::older_frames_ended)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::pump)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::link_tick)
