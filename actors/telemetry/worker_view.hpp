// actors/telemetry/worker_view.hpp
//
// What the reports of one worker say, in parts that each answer one question. cluster_view.hpp has one per worker and adds
// the reports to it.
#pragma once
#include "actors/core/span_phase.hpp"
#include "messages/node_report.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace poseidon {

/// Which actors does the worker have, and what do they send to each other? Actors that bear one name, one after the other,
/// are one entry. A link's entry passes to another link when it has ended.
struct worker_graph {
  struct actor {
    std::string name, type;
    std::uint64_t handled = 0, sent = 0;  ///< sent: along all edges that lead to it
    std::uint64_t changed = 0;            ///< the revision of the last change
    /// Messages sent and not yet handled; the two are not read at the same moment.
    [[nodiscard]] std::uint64_t waiting() const { return sent > handled ? sent - handled : 0; }
    /// Before the run ended: it is not shown until another one of its name lives.
    bool ended = false;
    std::uint64_t renamed = 0;  ///< the revision in which another link has taken its place
  };
  struct edge {
    std::uint32_t from = 0, to = 0;
    std::string message;
    std::uint64_t messages = 0, bytes = 0, changed = 0;
  };
  std::vector<actor> actors;
  std::vector<edge> edges;
  /// Rises with new and ended actors, new edges and other routes.
  std::uint64_t revision = 0;

  /// Adds a report that fits. `now_revision`: of the view, with this report. `run_ended`: the last graph stays.
  void take(const node_report& r, const std::vector<std::string>& names, std::uint64_t now_revision,
            bool run_ended);
};

/// What has the worker done when? The newest spans, in this node's time.
struct worker_spans {
  std::vector<std::string> lanes;
  std::deque<node_report::span> newest;
  std::uint64_t first = 0;  ///< number of newest.front(), counted over the whole run
  std::uint64_t left_out = 0;

  void add(const node_report::span& s);
};

/// How far is the worker, and how fast does it compute? Read from its spans.
struct worker_pace {
  /// The exchange of a layer's gradient.
  struct update {
    std::optional<std::uint64_t> handed_over;  ///< clock of the newest backward kernel
    std::optional<std::uint64_t> fresh;        ///< clock of the newest finished exchange
  };
  std::uint64_t clock = 0;          ///< clock of the newest forward kernel
  std::int64_t clock_since_ns = 0;  ///< when that clock was first seen
  /// When the newest clocks began, in this node's time, and their numbers.
  std::deque<std::pair<std::int64_t, std::uint64_t>> clocks;
  std::map<std::string, update, std::less<>> updates;  ///< by layer
  /// The newest clocks, and how long their kernels took, summed over all replicas.
  std::deque<std::pair<std::uint64_t, std::int64_t>> busy;
  std::int64_t computed_ns = 0;  ///< end of the newest kernel, in this node's time; 0: none

  /// Adds a span of `layer`, in this node's time.
  void add(const node_report::span& s, const std::string& layer, span_phase phase,
           std::int64_t now);
};

/// When was the worker last heard, and what does its clock say when this node's says `now`?
struct worker_contact {
  std::int64_t heard_ns = 0;  ///< when the last report came; 0: never
  /// When bytes last came over this node's link to the worker, whose reports may come late; 0: never.
  std::int64_t alive_ns = 0;
  std::int64_t known_ns = 0;       ///< when the last report was written, in this node's time
  std::int64_t offset_ns = 0;      ///< the worker's time minus this node's, as estimated
  std::int64_t uncertain_ns = -1;  ///< largest error of that estimate; -1: there is no estimate
  bool lost = false;
  std::string why_lost;

  /// Improves the estimate by an exchange: asked and now by this node's clock, heard and sent by the worker's.
  void compare(const node_report& r, std::int64_t now);
};

struct worker_view {
  /// Of actors, messages, layers and phases, in the order of sending.
  std::vector<std::string> names;
  std::uint32_t replicas = 0;
  std::vector<node_report::link> links;
  worker_graph graph;
  worker_spans spans;
  worker_pace pace;
  worker_contact contact;

  /// Errors   bad_frame if the report does not fit those before.
  void check(const node_report& r) const;
  /// Adds a report that fits.
  void take(const node_report& r, std::uint64_t revision, bool run_ended, std::int64_t now);
};

/// How many clocks a worker was behind the first one, at the last moment for which both have reported: comparing the
/// newest clock of each would make the worker that reports later look ahead.
[[nodiscard]] std::uint64_t lag_of(const std::map<std::uint32_t, worker_view>& workers,
                                   std::uint32_t worker, std::int64_t now);

/// "up", "unheard" (no report yet), "silent" (no report for seconds), "lost" (its link has ended).
[[nodiscard]] const char* condition_of(const worker_view& w, std::int64_t now,
                                       std::int64_t silent_after_ns);

/// From one exchange: asked (our clock), heard and sent (theirs), now (ours). The offset is their clock minus ours.
struct clock_estimate {
  std::int64_t offset_ns = 0, uncertain_ns = 0;
};
[[nodiscard]] clock_estimate compare_clocks(std::int64_t asked_ns, std::int64_t heard_ns,
                                            std::int64_t sent_ns, std::int64_t now);

}  // namespace poseidon
