// apps/web/view_json.hpp
//
// A cluster_view as the page reads it: JSON in the shapes below, the Chrome trace of all nodes, Prometheus' text. Each
// function holds the view's lock once, for a millisecond or so. Counts are totals since the run began: a reader that
// misses an event loses nothing.
//
//   graph    {"schema":1,"run":{..},"rev":..,"groups":[..],"nodes":[{id,name,kind,..}],"edges":[{id,src,dst,kind,..}],"routes":[..]}
//            for one worker. A node's id is its place among the worker's actors; an edge's id is its place among the
//            edges that have carried a message, or -1 for a planned edge. Actors that have ended are left out, with their
//            edges, but sums include what they sent. With a new "rev" the graph has to be fetched again.
//   tick     {"worker":..,"rev":..,"t":us,"n":[[id,queue,handled]],"e":[[id,messages,bytes]],"members":[..],"witnesses":[..],"doctor":{..}}
//            what changed, and which worker is stalled (apps/web/diagnosis.hpp)
//   spans    {"worker":..,"names":[[place,text]],"lanes":[[place,text]],"rows":[[lane,name,phase,begin us,us,clock,bytes]]}
#pragma once
#include "actors/telemetry/cluster_view.hpp"

#include <cstdint>
#include <string>

namespace poseidon {

class json_array;
class json_object;

[[nodiscard]] std::string graph_json(const cluster_view& view, std::uint32_t worker);

/// What has changed after revision `since`, which is moved on.
[[nodiscard]] std::string tick_json(const cluster_view& view, std::uint32_t worker,
                                    std::uint64_t& since);

struct span_place {
  std::size_t names = 0, lanes = 0;
  std::uint64_t spans = 0;
};
/// The spans after `from`, which is moved on, at most `most`, the newest. Empty if there is none.
[[nodiscard]] std::string spans_json(const cluster_view& view, std::uint32_t worker,
                                     span_place& from, std::size_t most);

/// A trace of all nodes for Perfetto, times in this node's clock; the last `clocks` clocks, 0 for all that is kept.
[[nodiscard]] std::string chrome_trace_json(const cluster_view& view, std::uint64_t clocks);

/// The text format of Prometheus: counters by layer and route, by link, by worker.
[[nodiscard]] std::string prometheus_text(const cluster_view& view);

/// {"graph":..,"tick":..,"history":..}: what a finished run's trace file holds besides its spans, so that the page can
/// show it again.
[[nodiscard]] std::string recording_json(const cluster_view& view);

/// A screen of text for people: the run's progress, its members, which worker waits for which.
[[nodiscard]] std::string status_text(const cluster_view& view);

/// The status as one line of JSON: {"stage":..,"why":..,"model":..,"clock":..,"last_clock":..,"loss":..,"images_per_s":..,
/// "hidden":..,"workers":[{..}],"doctor":{..}}. Unknown values are null.
[[nodiscard]] std::string status_json(const cluster_view& view);

/// Who takes part: the view, its leader, and a line for each member.
[[nodiscard]] std::string members_text(const cluster_view& view);
[[nodiscard]] std::string members_json(const cluster_view& view);
/// [{"witness":2,"address":"10.0.0.9:7600"}]: those that vote and train nothing.
[[nodiscard]] json_array witnesses_json(const run_facts& facts);

/// Where this node stands, and why it waits or has ended; null: there is nothing to say.
void put_stage(json_object& out, const cluster_view::state& s);

/// {"ok":true,"stage":"training","why":null,"worker":0,"clock":41,"stuck_s":0.2}: the seconds since the clock last rose.
[[nodiscard]] std::string health_json(const cluster_view& view);

}  // namespace poseidon
