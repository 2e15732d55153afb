// actors/telemetry/activity.hpp
//
// Measures what this node does: gathers from the edge_book, the trace_log and the links' counters what is new since the
// last time, as a node_report. Reads only what the actors write without waiting (relaxed counters, lanes of one
// writer each), sends no message and needs no turn of an actor, so it works while the actor system is stuck.
#pragma once
#include "actors/core/edges.hpp"
#include "actors/core/progress.hpp"
#include "actors/core/trace.hpp"
#include "actors/links/link_counters.hpp"
#include "messages/node_report.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace poseidon {

class activity {
 public:
  activity(std::shared_ptr<edge_book> edges, std::shared_ptr<trace_log> trace);

  /// A link of this node was opened. Any thread.
  void opened(std::uint32_t peer, std::shared_ptr<const link_counters> counters);

  /// On all links until now, headers included. Any thread.
  [[nodiscard]] traffic carried() const;

  /// What is new since the last call. There is one reader, which takes everything. Any thread.
  /// Cost     a look at each edge of each actor; allocates for what is new.
  [[nodiscard]] node_report take_new();

 private:
  struct known_edge {
    const edge_table::edge* edge = nullptr;
    std::uint64_t messages = 0;  // as last reported
    std::uint32_t place = 0;
  };
  struct known_actor {
    std::shared_ptr<const edge_table> table;   // null when over
    std::uint64_t handled = 0;                 // as last reported
    const edge_table::edge* newest = nullptr;  // the front of its list when we last looked
    std::vector<known_edge> edges;
    std::vector<const edge_table::edge*> strangers;  // edges to actors that are not known yet
    bool ended = false;                              // as last reported
    bool over = false;                               // and nothing more can come
  };

  std::uint32_t name(const std::string& text, node_report& r);
  /// For a text that stays at its place in memory as long as this object lives: the place is looked up instead of the text,
  /// because most of these texts come often.
  std::uint32_t lasting_name(std::string_view text, node_report& r);
  void take_actors(node_report& r);
  void take_actor(known_actor& a, std::uint32_t place, node_report& r);
  void take_edges(known_actor& a, std::uint32_t place, node_report& r);
  void take_spans(node_report& r);

  std::mutex mutex_;
  std::shared_ptr<edge_book> book_;
  std::shared_ptr<trace_log> trace_;
  mutable std::mutex links_mutex_;  // apart: carried() does not wait for a take_new()
  std::vector<std::pair<std::uint32_t, std::shared_ptr<const link_counters>>> links_;
  std::vector<known_actor> actors_;
  std::unordered_map<std::uint64_t, std::uint32_t> actor_of_id_;
  std::unordered_map<std::string, std::uint32_t> names_;
  std::vector<std::shared_ptr<const edge_table>> over_;  // whose last counts were taken just now
  std::unordered_map<const char*, std::pair<std::size_t, std::uint32_t>> texts_;
  std::vector<std::uint32_t> lane_of_place_;
  std::uint32_t known_edges_ = 0, known_lanes_ = 0;
};

}  // namespace poseidon
