// actors/telemetry/activity.hpp
//
// Measures what this node does: gathers from the edge_book, the trace_log and the links' counters what is new since the
// last time, as a node_report. Reads only what the actors write without waiting (relaxed counters, lanes of one
// writer each), sends no message and needs no turn of an actor, so it works while the actor system is stuck.
// An actor that has ended leaves its place to the next one of its name, and a link to any other link: graphs that are built again and
// again, and nodes that come and go, do not make the lists longer.
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
#include <tuple>
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
  /// One actor, from its spawn until no more of its messages can be counted. A place has one after the other.
  struct instance {
    std::uint32_t place = 0;
    std::uint64_t sent = 0, handled = 0;  // to this actor; by it
    std::uint64_t counted = 0;            // of its messages as handled, in its place
    bool over = false;
  };
  /// An edge of a table and the edge of the reports to which it adds: actors of one name add to the same ones.
  struct watched_edge {
    const edge_table::edge* edge = nullptr;
    std::uint64_t messages = 0, bytes = 0;  // as last read
    std::uint32_t place = 0;
  };
  /// An edge to an actor that is not known, or not yet.
  struct stranger {
    const edge_table::edge* edge = nullptr;
    bool was_there = false;  // at the last call, too
  };
  /// All actors that bear one name, one after the other; a place of a link that is over may pass to another link.
  struct actor_place {
    std::string name;
    std::shared_ptr<const edge_table> table;  // of the one that lives; null when it is over
    std::uint64_t handled = 0, reported = 0;  // handled by all of them; as last reported
    bool is_new = true;                       // an actor has taken the place since the last call
    bool ended = false;                       // as last reported
    std::uint64_t newest = 0;                 // number of its newest edge when we last looked
    std::vector<watched_edge> edges;
    std::vector<stranger> strangers;
  };
  struct edge_sum {
    std::uint64_t messages = 0, bytes = 0;
  };
  using edge_key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // from, to, message

  std::uint32_t name(const std::string& text, node_report& r);
  /// For a text that stays at its place in memory as long as this object lives: the place is looked up instead of the text,
  /// because most of these texts come often.
  std::uint32_t lasting_name(std::string_view text, node_report& r);
  void take_actors(node_report& r);
  void find_place(std::shared_ptr<const edge_table> table, node_report& r);
  void rename(std::uint32_t place, const std::string& to, node_report& r);
  void take_actor(std::uint32_t place, node_report& r);
  void take_edges(std::uint32_t place, node_report& r);
  [[nodiscard]] std::uint32_t edge_place(const edge_key& key, node_report& r);
  void count_handled(instance& i);
  void forget_retired();
  void take_spans(node_report& r);

  std::mutex mutex_;
  std::shared_ptr<edge_book> book_;
  std::shared_ptr<trace_log> trace_;
  mutable std::mutex links_mutex_;  // apart: carried() does not wait for a take_new()
  std::vector<std::pair<std::uint32_t, std::shared_ptr<const link_counters>>> links_;
  traffic former_;  // of links that have ended and are not listed any more
  std::size_t tables_seen_ = 0;
  bool all_bound_ = true;  // no actor was being spawned when the tables were read
  std::vector<actor_place> actors_;
  // By name, links' without a number.
  std::unordered_map<std::string, std::vector<std::uint32_t>> free_places_;
  std::unordered_map<std::uint64_t, instance> instances_;  // by CAF's id
  std::map<edge_key, std::uint32_t> edge_places_;
  std::vector<edge_sum> edge_sums_;  // by place
  std::unordered_map<std::string, std::uint32_t> names_;
  std::vector<std::shared_ptr<const edge_table>> over_;  // whose last counts were taken just now
  std::vector<std::uint64_t> retired_;  // ids whose actors were over at the last call
  std::unordered_map<const char*, std::pair<std::size_t, std::uint32_t>> texts_;
  std::vector<std::uint32_t> lane_of_place_;
  std::uint32_t known_lanes_ = 0;
};

}  // namespace poseidon
