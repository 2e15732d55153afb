// actors/telemetry/cluster_view.hpp
//
// Everything that this node knows of the run, for the page and the status: the actors and edges of each worker with their
// counts, spans on one clock, links, members, routes and their reasons. Filled by node (what the run is), by this
// node's own activity and by the other nodes' reports; read by the page's server. It needs no turn of an actor, so it
// answers while the actor system is stuck.
#pragma once
#include "actors/telemetry/activity.hpp"
#include "actors/telemetry/actor_graph.hpp"
#include "actors/telemetry/run_history.hpp"
#include "actors/telemetry/worker_view.hpp"
#include "messages/ids.hpp"
#include "messages/node_report.hpp"
#include "messages/node_stage.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace poseidon {

/// What is fixed until the view changes.
struct run_facts {
  std::string model;
  std::string promise;                           ///< "results: ..."; empty: there is nothing to say
  std::uint32_t self = 0;                        ///< seat of this node
  std::map<std::uint32_t, std::string> members;  ///< addresses by seat; none in a run of one node
  /// Likewise; they vote, and neither train nor report.
  std::map<std::uint32_t, std::string> witnesses;
  std::uint32_t leader = 0;    ///< its seat
  std::uint64_t epoch = 0;     ///< of the view
  std::uint32_t replicas = 1;  ///< on this node
  std::uint64_t first_clock = 0, last_clock = 0, staleness = 0;
  /// More with outer steps. first_clock and last_clock are iterations.
  std::uint64_t iterations_per_clock = 1;
  std::uint64_t images_per_clock = 0;  ///< summed over all workers
  std::vector<std::uint64_t> shares;   ///< images per clock by worker; empty: equal shares
  /// The planned actors of a worker with that number of replicas: groups, cards, kinds of edges.
  std::function<actor_graph(std::uint32_t worker, std::uint32_t replicas)> plan;
  struct layer_route {
    std::string layer, route, wire, why;
    std::uint64_t bytes = 0;  ///< what one clock sends one way: parameters, or a node's factors
    double server_ms = -1, factors_ms = -1;  ///< as predicted; -1: not predicted
  };
  std::vector<layer_route> routes;  ///< layers that learn

  /// Where a member listens; "": it is no member, or the run has one node.
  [[nodiscard]] std::string address_of(std::uint32_t seat) const {
    const auto at = members.find(seat);
    return at == members.end() ? "" : at->second;
  }
  /// A member's worker id: its place among the members. 0 for a node that is no member.
  [[nodiscard]] std::uint32_t worker_of(std::uint32_t seat) const {
    const auto at = members.find(seat);
    return at == members.end() ? 0 : static_cast<std::uint32_t>(std::distance(members.begin(), at));
  }
};

/// How much of this node's own worker_view a reader has read.
struct report_place {
  std::uint32_t names = 0, actors = 0, edges = 0, lanes = 0;
  std::uint64_t spans = 0, spans_left_out = 0, revision = 0;
};

class cluster_view {
 public:
  cluster_view(std::shared_ptr<edge_book> edges, std::shared_ptr<trace_log> trace,
               std::shared_ptr<run_history> history);

  [[nodiscard]] activity& own() { return own_; }
  [[nodiscard]] run_history& history() { return *history_; }
  [[nodiscard]] const run_history& history() const { return *history_; }
  /// Before training begins, and when the view has changed.
  void begin(run_facts facts);
  /// Adds what this node has done since the last call. Any thread.
  void sample();
  /// What this node reports to another one: all that is new since `from`, which is moved on. Without the watch's times.
  [[nodiscard]] node_report report_since(report_place& from) const;
  /// Adds a member's report; one of a node that has left is dropped. Errors  bad_frame if it does not fit the reports before;
  /// then nothing of it is added.
  void take(seat_id from, const node_report& r);
  void lost(seat_id who, const std::string& why);
  /// Training waits, and why, "paused: ..."; empty: it does not wait any more. The next view that begins ends it, too.
  void paused(const std::string& why);
  /// Where this node stands. False: as before, or it has ended.
  bool stands_at(node_stage stage);
  void ended(const std::string& error);

  /// Reads under the lock.
  struct state {
    std::optional<run_facts> facts;
    std::map<std::uint32_t, worker_view> workers;  ///< by seat
    std::uint64_t revision = 0;                    ///< rises with every report
    node_stage stage = node_stage::starting;       ///< of this node
    std::string why;  ///< "paused: ..." or "ended: ..."; empty: there is nothing to say
    std::int64_t silence_limit_ns = 2'000'000'000;  ///< after which a link ends

    [[nodiscard]] bool ended() const { return stage == node_stage::ended; }
    /// The stage, or why it is that one.
    [[nodiscard]] std::string words() const {
      return why.empty() ? std::string(to_string(stage)) : why;
    }
    /// After which a worker is shown as silent. Reports come once a second at least.
    [[nodiscard]] std::int64_t silent_after_ns() const {
      return std::max<std::int64_t>(1'300'000'000, silence_limit_ns / 2);
    }
  };
  template <class F>
  auto read(F&& f) const {
    const std::lock_guard lock(mutex_);
    return f(static_cast<const state&>(state_));
  }

  /// Before anybody reads.
  void set_silence_limit(std::chrono::nanoseconds limit) {
    const std::lock_guard lock(mutex_);
    state_.silence_limit_ns = limit.count();
  }

  /// How many readers look at the view now. With any, telemetry asks for reports more often.
  void watchers(std::size_t n) { watchers_.store(n, std::memory_order_relaxed); }
  [[nodiscard]] std::size_t watchers() const { return watchers_.load(std::memory_order_relaxed); }

 private:
  void note_who_lives(const std::vector<node_report::link>& before,
                      const std::vector<node_report::link>& now_seen, std::int64_t now);

  activity own_;
  std::shared_ptr<run_history> history_;
  std::mutex sampling_;  // before mutex_: samples are merged in the order in which they were taken
  mutable std::mutex mutex_;
  state state_;
  std::atomic<std::size_t> watchers_{0};
};

}  // namespace poseidon
