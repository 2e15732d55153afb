// actors/links/network_link.hpp
//
// One authenticated connection to one other node: frames out by priority and budget, frames in to their
// actors. Two actors with a thread each, because a sender that waits for a peer that does not read must not
// keep its own node from reading: network_link writes, its link_receiver (link_receiver.hpp) reads. In the
// graph both are "network_link". Spawn them with open_link().
//
// Accepts  send_frame      from any actor     copied nowhere: the payload's owner lives until it is written
//          close_link      from node          sends what waits, says goodbye, then link_lost on purpose
//          bind_link       from node          who is who, limits, routes; link_bound says that it holds
//          receiver_ended  from link_receiver exactly once; why there is nothing more to read
//          pump            from itself        one write of at most 256 KiB, so that what came meanwhile counts;
//                                             it returns, unfinished, from a peer that takes nothing. Later, when
//                                             a limit or a budget says so
//          link_tick       from itself        heartbeats while idle
// Sends    link_bound      to node            once per bind_link
//          link_flow       to node            a few times a second, once it is bound
//          link_lost       to node            exactly once, as its last message
// State    frame_queue: what waits, by priority. Detached: it blocks in write.
// Fails    never by itself: whatever goes wrong with the connection ends as link_lost.
#pragma once
#include "actors/core/actor.hpp"
#include "actors/links/frame_queue.hpp"
#include "actors/links/link_counters.hpp"
#include "actors/links/stall_watch.hpp"
#include "messages/link.hpp"
#include "messages/wire/buffer_pool.hpp"
#include "messages/wire/socket.hpp"
#include "models/device/factors.hpp"
#include "models/device/wire_format.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace poseidon {

/// What a frame of this run can say. Empty before the view is known: frames with values are bad
/// then.
struct link_limits {
  std::uint32_t workers = 0;
  std::vector<std::uint32_t> chunk_values;  ///< by chunk id
  std::vector<wire_format> chunk_formats;   ///< by chunk id; empty: float32 throughout
  std::uint64_t first_version = 0;          ///< whose values travel as float32
  std::uint32_t history_slots = 4;          ///< arrays of solver state per chunk, at most
  bool clips = false;                       ///< the run has clip_gradients
  std::vector<factor_shape> factors;        ///< by layer: of one node, rows 0 where it sends none
};

/// Whom the receiver tells. An empty port: such frames are dropped.
struct link_routes {
  port<gradient_arrived> shard;
  port<squares_arrived> shard_squares;
  std::function<port<chunk_landed>(chunk_id)> gather;
  std::function<port<factors_landed>(layer_id)> factors;
  port<control_arrived> control;
  port<report_arrived> reports;  ///< empty: this node has asked nobody for any
  std::function<port<history_arrived>(chunk_id)> history_owner;  ///< install_history
  port<history_arrived> history_checkpointer;                    ///< history
  port<link_bound> bound;
  port<link_lost> lost;
  port<link_flow> flow;  ///< whoever wants to know how fast the line is
};

/// Where fresh parameters lie in this node. Called by the receiver's thread.
class landing {
 public:
  virtual ~landing() = default;
  /// The place for `chunk` at `version`, 4 * its count bytes; the receiver fills it and then tells
  /// chunk_landed. Until that message it holds a mixture, for good if the link is lost meanwhile.
  /// Errors   bad_frame if this version cannot be due: ends the link, nothing is written.
  virtual std::span<std::byte> place(chunk_id chunk, version_id version) = 0;
  /// A reduced format: makes `version` of the chunk of the one before and of what has been received. The receiver then
  /// tells chunk_landed.
  virtual void add_changes(chunk_id, version_id, std::span<const std::byte>) {}
  /// The same for the values of a frame of factors; the receiver then tells factors_landed. Empty: this node
  /// takes none.
  virtual std::span<std::byte> place_factors(worker_id, const frames::factors&) { return {}; }
};

/// What the run lets a peer say now, beyond what check_frame() knows. Called by the receiver's thread with
/// each header, before the payload is read.
class frame_gate {
 public:
  virtual ~frame_gate() = default;
  /// Errors   bad_frame: ends the link, the payload is not read.
  virtual void admit(const frame_header& h) = 0;
};

struct link_binding {
  worker_id self = no_worker;
  worker_id peer = no_worker;
  link_limits limits;
  link_routes routes;
  std::shared_ptr<poseidon::landing> landing;
  std::shared_ptr<frame_gate> gate;  ///< null: whatever passes check_frame()
  bool fifo =
      false;  ///< frames with a payload go in the order in which they come, whatever their priority
};

/// To a network_link: from now on this holds. Frames that arrive before it are held to what held
/// before, so whatever lets a peer send (member_ready, through another link) has to wait for link_bound.
struct bind_link {
  std::shared_ptr<const link_binding> binding;
};

/// One frame written or read, for the trace. Times are steady_clock nanoseconds.
struct link_event {
  bool sent = false;
  worker_id peer{};
  std::string_view kind;
  std::optional<chunk_id> chunk;
  std::optional<layer_id> layer;  ///< of factors
  std::uint64_t number = 0;       ///< clock or version; 0 where there is none
  std::int64_t start_ns = 0;  ///< the first byte is about to be written, the header has been read
  std::int64_t end_ns = 0;    ///< the last byte is in the kernel, has been read and verified
  // Where several frames go in one write, its time is shared out by bytes. So the events of one
  // direction follow each other, or a more urgent one lies within the one that it interrupted.
  std::size_t bytes = 0;  ///< payload
};
/// Called by the link's two threads, also at the same time.
using link_trace = std::function<void(const link_event&)>;

struct link_options {
  std::shared_ptr<tcp_socket> socket;  ///< hands have been shaken
  std::string address;                 ///< of the peer, as users know it: "10.0.0.7:7600"
  link_binding binding;
  /// The peer opens its half when it has the run's view and has built its nets; from its first word on
  /// the silence limit holds.
  std::chrono::milliseconds first_word_limit{120000};
  std::chrono::milliseconds silence_limit{2000};
  std::chrono::milliseconds heartbeat{250};
  /// A peer that takes nothing for so long while something waits for it is given up, even if it can
  /// be heard: its reading half is stuck, or the network carries one direction only.
  std::chrono::milliseconds stall_limit{10000};
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  double rate_mbit_s = 0;  ///< at most this much is written; 0: as much as the line takes
  /// At most this much of frames with a payload; the others, and heartbeats, are not counted and wait for nothing.
  double budget_mbit_s = 0;
  std::size_t pool_bytes = link_pool_bytes;
  link_trace trace;
  std::shared_ptr<link_counters> counters = std::make_shared<link_counters>();
};

/// "worker 2 (10.0.0.7:7600)"
[[nodiscard]] std::string peer_name(worker_id peer, const std::string& address);
[[nodiscard]] std::string seconds_text(std::chrono::steady_clock::duration d);  ///< "2.5 s"
/// An event with the frame's kind, chunk and number filled in.
[[nodiscard]] link_event describe(const frame_header& h);

struct pump {
  std::uint64_t turn = 0;  ///< only the last one that was asked for counts
};
struct link_tick {};
struct receiver_ended {
  std::string why;
  bool goodbye = false;  ///< the peer said so before
};

/// What both halves of a link share.
struct link_shared;

class network_link : public actor<network_link> {
 public:
  static constexpr const char* type_name = "network_link";
  using accepts = messages<send_frame, close_link, bind_link, receiver_ended, pump, link_tick>;
  using sends = messages<link_bound, link_flow, link_lost>;

  network_link(actor_context context, std::shared_ptr<link_shared> shared);
  ~network_link() override;
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
  struct bucket;
  struct outbox;

  void want_pump(std::chrono::milliseconds delay = std::chrono::milliseconds{0});
  [[nodiscard]] std::optional<frame_queue::piece> next_piece();
  void fill_outbox();
  void write_outbox();
  void written(std::int64_t begin_ns);
  void put_now(frame_header h);
  void break_off(std::string why);
  void said_goodbye();
  void finish(const receiver_ended& m);

  std::shared_ptr<link_shared> shared_;
  frame_queue queue_;
  std::unique_ptr<bucket> line_, budget_;  // of all that is written; of frames with a payload
  std::unique_ptr<outbox> outbox_;
  stall_watch stall_;
  phase phase_ = phase::open;
  std::optional<std::chrono::steady_clock::time_point> pump_due_;
  std::uint64_t pump_turn_ = 0;
  bool goodbye_put_ = false;  // in the outbox, or written
  std::string close_reason_;
  std::string own_fault_;  // why we ended it, if we did; goes before what the receiver saw of it
  std::optional<receiver_ended> peer_done_;  // it has said goodbye while we still flush
  std::chrono::steady_clock::time_point last_write_, goodbye_at_;
};

/// Spawns both halves; `name` is the graph's, say "network_link 2". Ends by close_link or by
/// itself.
[[nodiscard]] handle<network_link> open_link(caf::actor_system& system, edge_book& book,
                                             const std::string& name, link_options options);

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::bind_link)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::receiver_ended)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::pump)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::link_tick)
