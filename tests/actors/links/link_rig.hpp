// tests/actors/links/link_rig.hpp - real links over loopback inside one process, and inboxes to wait on.
// A test waits for the event that it claims, with a deadline long enough for a busy machine, and
// never for time.
#pragma once
#include "actors/links/network_link.hpp"
#include "messages/wire/handshake.hpp"

#include <caf/actor_system_config.hpp>
#include <caf/atom.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace poseidon::test {

inline constexpr std::chrono::seconds patience{60};

/// What came, in order; any thread puts, the test waits.
template <class M>
class inbox {
 public:
  void put(M m) {
    const std::lock_guard lock(mutex_);
    got_.push_back(std::move(m));
    changed_.notify_all();
  }
  /// The first n; fewer only after the deadline.
  std::vector<M> wait_for(std::size_t n) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [&] { return got_.size() >= n; });
    return got_;
  }
  /// Those among all that came which `keep` takes, at least n of them; fewer only after the deadline.
  template <class Keep>
  std::vector<M> wait_for(std::size_t n, Keep keep) {
    std::unique_lock lock(mutex_);
    std::vector<M> kept;
    changed_.wait_for(lock, patience, [&] {
      kept.clear();
      std::copy_if(got_.begin(), got_.end(), std::back_inserter(kept), keep);
      return kept.size() >= n;
    });
    return kept;
  }
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return got_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<M> got_;
};

template <class M>
class inbox_actor : public actor<inbox_actor<M>> {
 public:
  static constexpr const char* type_name = "inbox";
  using accepts = messages<M>;
  using sends = messages<>;
  inbox_actor(actor_context context, std::shared_ptr<inbox<M>> to)
      : actor<inbox_actor<M>>(context), to_(std::move(to)) {}
  void on(const M& m) { to_->put(m); }

 private:
  std::shared_ptr<inbox<M>> to_;
};

/// An actor system with threads. Ends what the test spawned through it.
class system_rig {
 public:
  system_rig() : system_(config_) {}
  ~system_rig() {
    for (auto& a : to_end_) caf::anon_send_exit(a, caf::exit_reason::kill);
  }
  template <class M>
  std::pair<port<M>, std::shared_ptr<inbox<M>>> listen() {
    auto box = std::make_shared<inbox<M>>();
    auto h = spawn<inbox_actor<M>>(system_, book, thread_kind::shared, "inbox", box);
    to_end_.push_back(h.untyped());
    return {h, box};
  }
  void end_with_test(caf::actor a) { to_end_.push_back(std::move(a)); }
  caf::actor_system& system() { return system_; }
  edge_book book;

 private:
  struct config : caf::actor_system_config {
    config() {
      set("scheduler.policy", caf::atom("sharing"));
      set("scheduler.max-threads", std::size_t{2});
      set("logger.console", caf::atom("none"));
    }
  };
  config config_;
  caf::actor_system system_;
  std::vector<caf::actor> to_end_;
};

/// Two ends of one connection.
inline std::pair<std::shared_ptr<tcp_socket>, std::shared_ptr<tcp_socket>> socket_pair() {
  tcp_listener l({"127.0.0.1", 0});
  auto a = connect_to({"127.0.0.1", l.port()}, patience);
  auto b = l.accept(patience);
  REQUIRE(b);
  return {a, b};
}

/// A parameter store for `chunks` chunks of equal size.
class store : public landing {
 public:
  store(std::size_t chunks, std::size_t values) : values_(chunks, std::vector<float>(values)) {}
  std::span<std::byte> place(chunk_id chunk, version_id version) override {
    if (version < due)
      throw bad_frame("fresh_parameters", "version", std::to_string(value(version)),
                      std::to_string(value(due)));
    return std::as_writable_bytes(std::span(values_[value(chunk)]));
  }
  void add_changes(chunk_id chunk, version_id, std::span<const std::byte> bytes) override {
    auto& v = values_[value(chunk)];
    add_decoded(changes_in, bytes, v, v);
  }
  void take_rounded(chunk_id chunk, version_id, wire_format format,
                    std::span<const std::byte> bytes) override {
    decode(format, bytes, values_[value(chunk)]);
  }
  /// For one piece.
  std::span<std::byte> place_factors(worker_id, const frames::factors& f) override {
    factors_.resize(1000);
    return std::as_writable_bytes(std::span(factors_).first(f.rows * 3));
  }
  [[nodiscard]] const std::vector<float>& factors() const { return factors_; }
  [[nodiscard]] const std::vector<float>& at(std::size_t chunk) const { return values_[chunk]; }
  version_id due{0};
  wire_format changes_in = wire_format::float16;

 private:
  std::vector<float> factors_;
  std::vector<std::vector<float>> values_;
};

/// One end with everything that it says in inboxes.
struct link_end {
  handle<network_link> link;
  std::shared_ptr<inbox<gradient_arrived>> gradients;
  std::shared_ptr<inbox<squares_arrived>> squares;
  std::shared_ptr<inbox<chunk_landed>> landed;
  std::shared_ptr<inbox<factors_landed>> factors;
  std::shared_ptr<inbox<control_arrived>> control;
  std::shared_ptr<inbox<history_inherited>> installed;
  std::shared_ptr<inbox<history_arrived>> gathered;
  std::shared_ptr<inbox<link_lost>> lost;
  std::shared_ptr<inbox<link_event>> events;
  std::shared_ptr<store> parameters;
  std::shared_ptr<link_counters> counters;
  std::shared_ptr<tcp_socket> socket;

  template <class M>
  void tell(M m) {
    tell_from_outside(link, std::move(m));
  }
  /// `count` float32, each the number i; owned by the frame.
  void send(frame_header h, std::size_t count, float fill, std::uint32_t priority) {
    auto v = std::make_shared<std::vector<float>>(count, fill);
    const auto bytes = std::as_bytes(std::span(*v));
    tell(send_frame{std::move(h), {v, bytes}, priority});
  }
};

struct end_options {
  seat_id self{0}, peer{1};
  std::uint64_t epoch = 0;          ///< of the view
  std::optional<worker_id> worker;  ///< the peer, in the view; empty: its seat is its place
  bool watches = false;             ///< it reads `report`, or has done so in a view before
  std::size_t chunks = 4, values = 1000;
  std::chrono::milliseconds silence_limit{patience};
  std::chrono::milliseconds least_silence_limit{patience};
  bool may_be_lost = false;
  std::chrono::milliseconds heartbeat{250};
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  double rate_mbit_s = 0, budget_mbit_s = 0;
  bool clips = false;
  by_id<layer_id, factor_shape> factors;
  by_id<chunk_id, wire_format> formats;
  bool names_formats = false;
  std::shared_ptr<frame_gate> gate;
  std::size_t pool_bytes = std::size_t{4} << 30;
  std::optional<link_keys> keys;
};

inline link_end make_end(system_rig& rig, std::shared_ptr<tcp_socket> socket,
                         const end_options& o) {
  link_end e;
  link_options l;
  auto& r = l.binding.routes;
  std::tie(r.shard, e.gradients) = rig.listen<gradient_arrived>();
  std::tie(r.shard_squares, e.squares) = rig.listen<squares_arrived>();
  port<chunk_landed> gather;
  std::tie(gather, e.landed) = rig.listen<chunk_landed>();
  r.gather = [gather](chunk_id) { return gather; };
  port<factors_landed> broadcast;
  std::tie(broadcast, e.factors) = rig.listen<factors_landed>();
  r.factors = [broadcast](layer_id) { return broadcast; };
  std::tie(r.control, e.control) = rig.listen<control_arrived>();
  port<history_inherited> owner;
  std::tie(owner, e.installed) = rig.listen<history_inherited>();
  r.history_owner = [owner](chunk_id) { return owner; };
  std::tie(r.history_checkpointer, e.gathered) = rig.listen<history_arrived>();
  std::tie(r.lost, e.lost) = rig.listen<link_lost>();
  e.events = std::make_shared<inbox<link_event>>();
  e.parameters = std::make_shared<store>(o.chunks, o.values);
  e.counters = l.counters;
  e.socket = socket;
  l.socket = std::move(socket);
  l.keys = o.keys;
  l.address = "10.0.0." + std::to_string(7 + value(o.peer)) + ":7600";
  l.binding.self = {o.self, o.epoch};
  l.binding.peer = o.peer;
  l.binding.worker = o.worker.value_or(worker_id{value(o.peer)});
  l.binding.limits.clips = o.clips;
  l.binding.limits.watches = o.watches;
  l.binding.limits.factors = o.factors;
  l.binding.limits.chunk_formats = o.formats;
  l.binding.limits.names_formats = o.names_formats;
  l.binding.gate = o.gate;
  l.binding.limits.chunk_values.assign(o.chunks, static_cast<std::uint32_t>(o.values));
  l.binding.landing = e.parameters;
  l.first_word_limit = l.silence_limit = o.silence_limit;
  l.least_silence_limit = o.least_silence_limit;
  l.binding.may_be_lost = o.may_be_lost;
  l.heartbeat = o.heartbeat;
  l.now = o.now;
  l.rate_mbit_s = o.rate_mbit_s;
  l.budget_mbit_s = o.budget_mbit_s;
  l.pool_bytes = o.pool_bytes;
  l.trace = [events = e.events](const link_event& v) { events->put(v); };
  e.link = open_link(rig.system(), rig.book, "network_link " + std::to_string(value(o.peer)),
                     std::move(l));
  rig.end_with_test(e.link.untyped());
  return e;
}

}  // namespace poseidon::test
