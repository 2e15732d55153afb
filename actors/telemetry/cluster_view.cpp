#include "actors/telemetry/cluster_view.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace poseidon {

cluster_view::cluster_view(std::shared_ptr<edge_book> edges, std::shared_ptr<trace_log> trace,
                           std::shared_ptr<run_history> history)
    : own_(std::move(edges), std::move(trace)), history_(std::move(history)) {}

void cluster_view::begin(run_facts facts) {
  const std::lock_guard lock(mutex_);
  if (!facts.members.empty())
    std::erase_if(state_.workers, [&](const auto& w) {
      return w.first != facts.self && state_.facts && !facts.members.contains(w.first);
    });
  for (const auto& [seat, address] : facts.members) state_.workers[seat];
  state_.workers[facts.self].replicas = facts.replicas;
  state_.why.clear();
  state_.facts = std::move(facts);
  ++state_.revision;
  for (auto& [id, w] : state_.workers) w.graph.revision = state_.revision;
}

void cluster_view::sample() {
  const std::lock_guard in_order(sampling_);
  auto r = own_.take_new();
  const std::lock_guard lock(mutex_);
  const auto self = state_.facts ? state_.facts->self : 0;
  r.replicas = state_.facts ? state_.facts->replicas : 0;
  // A joiner learns its number with its view: until then it is worker 0 here.
  if (self != 0 && state_.workers[self].graph.actors.empty() && r.first_actor != 0)
    std::swap(state_.workers[self], state_.workers[0]);
  state_.workers[self].contact.uncertain_ns = 0;
  note_who_lives(state_.workers[self].links, r.links, r.sent_ns);
  state_.workers[self].take(r, ++state_.revision, state_.ended(), r.sent_ns);
  const auto all = own_.carried();
  if (state_.facts && state_.facts->members.size() > 1)
    history_->carried(all.bytes_out, all.bytes_in);
}

/// Reports go after everything that trains, so over a slow link they come late: a worker whose bytes still come is not
/// silent.
void cluster_view::note_who_lives(const std::vector<node_report::link>& before,
                                  const std::vector<node_report::link>& now_seen,
                                  std::int64_t now) {
  for (const auto& l : now_seen) {
    const auto old =
        std::find_if(before.begin(), before.end(), [&](const auto& b) { return b.peer == l.peer; });
    if (old == before.end() || l.bytes_in > old->bytes_in)
      if (const auto w = state_.workers.find(l.peer); w != state_.workers.end())
        w->second.contact.alive_ns = now;
  }
}

node_report cluster_view::report_since(report_place& from) const {
  const std::lock_guard lock(mutex_);
  const auto& w = state_.workers.at(state_.facts ? state_.facts->self : 0);
  const auto size = [](const auto& list) { return static_cast<std::uint32_t>(list.size()); };
  node_report r;
  r.replicas = w.replicas;
  r.first_name = from.names;
  r.first_actor = from.actors;
  r.first_edge = from.edges;
  r.first_lane = from.lanes;
  std::unordered_map<std::string_view, std::uint32_t> places;
  for (std::uint32_t i = 0; i < w.names.size(); ++i) places[w.names[i]] = i;
  r.names.assign(w.names.begin() + from.names, w.names.end());
  for (auto i = from.actors; i < w.graph.actors.size(); ++i)
    r.actors.push_back({places.at(w.graph.actors[i].name), places.at(w.graph.actors[i].type)});
  for (auto i = from.edges; i < w.graph.edges.size(); ++i)
    r.edges.push_back(
        {w.graph.edges[i].from, w.graph.edges[i].to, places.at(w.graph.edges[i].message)});
  for (auto i = from.lanes; i < w.spans.lanes.size(); ++i)
    r.lanes.push_back(places.at(w.spans.lanes[i]));
  for (std::uint32_t i = 0; i < from.actors; ++i)
    if (w.graph.actors[i].renamed > from.revision)
      r.renamed.push_back({i, places.at(w.graph.actors[i].name)});
  for (std::uint32_t i = 0; i < w.graph.actors.size(); ++i)
    if (w.graph.actors[i].changed > from.revision) {
      r.handled_by.push_back({i, w.graph.actors[i].handled});
      if (w.graph.actors[i].ended) r.ended.push_back(i);
    }
  for (std::uint32_t i = 0; i < w.graph.edges.size(); ++i)
    if (w.graph.edges[i].changed > from.revision)
      r.counts.push_back({i, w.graph.edges[i].messages, w.graph.edges[i].bytes});
  const auto end = w.spans.first + w.spans.newest.size();
  const auto begin =
      std::max({from.spans, w.spans.first, end - std::min<std::uint64_t>(end, max_report_spans)});
  r.spans.assign(w.spans.newest.begin() + static_cast<std::ptrdiff_t>(begin - w.spans.first),
                 w.spans.newest.end());
  r.spans_left_out = begin - from.spans + w.spans.left_out - from.spans_left_out;
  r.links = w.links;
  from = {.names = size(w.names),
          .actors = size(w.graph.actors),
          .edges = size(w.graph.edges),
          .lanes = size(w.spans.lanes),
          .spans = end,
          .spans_left_out = w.spans.left_out,
          .revision = state_.revision};
  r.sent_ns = now_ns();
  return r;
}

void cluster_view::take(seat_id from, const node_report& r) {
  const auto now = now_ns();
  const std::lock_guard lock(mutex_);
  if (state_.facts && !state_.facts->members.contains(value(from))) return;
  auto& w = state_.workers[value(from)];
  w.check(r);
  w.contact.compare(r, now);
  w.take(r, ++state_.revision, state_.ended(), now);
}

void cluster_view::lost(seat_id who, const std::string& why) {
  const std::lock_guard lock(mutex_);
  auto& w = state_.workers[value(who)];
  w.contact.lost = true;
  w.contact.why_lost = why;
  ++state_.revision;
}

void cluster_view::paused(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (state_.ended() || why == state_.why) return;
  state_.why = why;
  ++state_.revision;
}

bool cluster_view::stands_at(node_stage stage) {
  const std::lock_guard lock(mutex_);
  if (state_.ended() || stage == state_.stage) return false;
  state_.stage = stage;
  ++state_.revision;
  return true;
}

void cluster_view::ended(const std::string& error) {
  history_->ended(error);
  const std::lock_guard lock(mutex_);
  state_.stage = node_stage::ended;
  state_.why = error.empty() ? "" : "ended: " + error;
  ++state_.revision;
}

}  // namespace poseidon
