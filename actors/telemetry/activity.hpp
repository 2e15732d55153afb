// actors/telemetry/activity.hpp
//
// What this node does, measured: gathers from the edge_book, the trace_log and the links' counters what is new since
// last time, as a node_report. Reads only what the actors write without waiting (relaxed counters, lanes of one
// writer each), sends no message and needs no actor's turn, so it works while the actor system is stuck.
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

  /// What is new since the last call: one reader, who takes everything. Any thread.
  /// Cost     a look at each edge of each actor; allocates for what is new.
  [[nodiscard]] node_report take_new();

 private:
  struct known_edge {
    const edge_table::edge* edge = nullptr;
    std::uint64_t messages = 0;  // as told
    std::uint32_t place = 0;
  };
  struct known_actor {
    std::shared_ptr<const edge_table> table;
    std::uint64_t handled = 0;                 // as told
    const edge_table::edge* newest = nullptr;  // the front of its list when we last looked
    std::vector<known_edge> edges;
    std::vector<const edge_table::edge*> strangers;  // edges to actors that we have not met yet
    bool ended = false;                              // as told
    bool over = false;                               // and nothing more can come
  };

  std::uint32_t name(std::string_view text, node_report& r);
  void take_actors(node_report& r);
  void take_actor(known_actor& a, std::uint32_t place, node_report& r);
  void take_edges(known_actor& a, std::uint32_t place, node_report& r);
  void take_spans(node_report& r);

  std::mutex mutex_;
  std::shared_ptr<edge_book> book_;
  std::shared_ptr<trace_log> trace_;
  mutable std::mutex links_mutex_;  // apart: who asks for carried() does not wait for a take_new()
  std::vector<std::pair<std::uint32_t, std::shared_ptr<const link_counters>>> links_;
  std::vector<known_actor> actors_;
  std::unordered_map<std::uint64_t, std::uint32_t> actor_of_id_;
  std::unordered_map<std::string, std::uint32_t> names_;
  // The same text often comes from the same place in memory; this spares hashing it.
  std::unordered_map<const char*, std::pair<std::size_t, std::uint32_t>> texts_;
  std::vector<std::uint32_t> lane_of_place_;
  std::uint32_t edges_told_ = 0, lanes_told_ = 0;
};

}  // namespace poseidon
