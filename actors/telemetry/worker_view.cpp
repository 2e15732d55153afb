#include "actors/telemetry/worker_view.hpp"

#include "messages/wire/codec.hpp"

#include <algorithm>
#include <iterator>
#include <unordered_set>

namespace poseidon {

namespace {

constexpr std::size_t kept_clocks = 1024;  // those of the last seconds
// A worker without a report for this long is taken not to have moved since its last report.
constexpr std::int64_t late_ns = 2'000'000'000;
constexpr std::size_t kept_spans = 60000;  // per worker: some hundred iterations of a deep net

void require_below(const char* field, std::uint64_t got, std::uint64_t limit) {
  if (got >= limit)
    throw bad_frame("report", field, std::to_string(got), "less than " + std::to_string(limit));
}

void require_next(const char* field, std::uint64_t got, std::size_t known) {
  if (got != known) throw bad_frame("report", field, std::to_string(got), std::to_string(known));
}

}  // namespace

/// Checks the whole report before any of it is added.
void worker_view::check(const node_report& r) const {
  require_next("first name", r.first_name, names.size());
  require_next("first actor", r.first_actor, graph.actors.size());
  require_next("first edge", r.first_edge, graph.edges.size());
  require_next("first lane", r.first_lane, spans.lanes.size());
  const auto all_names = names.size() + r.names.size();
  const auto all_actors = graph.actors.size() + r.actors.size();
  const auto all_lanes = spans.lanes.size() + r.lanes.size();
  const auto all_edges = graph.edges.size() + r.edges.size();
  for (const auto& a : r.actors)
    require_below("name", a.name, all_names), require_below("type", a.type, all_names);
  for (const auto& e : r.edges) {
    require_below("edge's sender", e.from, all_actors);
    require_below("edge's receiver", e.to, all_actors);
    require_below("message", e.message, all_names);
  }
  for (const auto l : r.lanes) require_below("lane's name", l, all_names);
  for (const auto& h : r.handled_by) require_below("actor", h.actor, all_actors);
  for (const auto a : r.ended) require_below("ended actor", a, all_actors);
  for (const auto& n : r.renamed)
    require_below("renamed actor", n.actor, all_actors), require_below("name", n.name, all_names);
  for (const auto& c : r.counts) require_below("edge", c.edge, all_edges);
  for (const auto& s : r.spans)
    require_below("lane", s.lane, all_lanes), require_below("layer", s.name, all_names),
        require_below("phase", s.phase, all_names);
}

clock_estimate compare_clocks(std::int64_t asked_ns, std::int64_t heard_ns, std::int64_t sent_ns,
                              std::int64_t now) {
  // The other node's time at the middle of the exchange minus ours. The time under way may all have been one way.
  const auto ours = asked_ns + (now - asked_ns) / 2;
  const auto theirs = heard_ns + (sent_ns - heard_ns) / 2;
  const auto on_the_way = (now - asked_ns) - (sent_ns - heard_ns);
  return {theirs - ours, std::max<std::int64_t>(0, on_the_way / 2)};
}

const char* condition_of(const worker_view& w, std::int64_t now, std::int64_t silent_after_ns) {
  if (w.contact.lost) return "lost";
  if (w.contact.heard_ns == 0) return "unheard";
  return now - std::max(w.contact.heard_ns, w.contact.alive_ns) > silent_after_ns ? "silent" : "up";
}

std::uint64_t lag_of(const std::map<std::uint32_t, worker_view>& workers, std::uint32_t worker,
                     std::int64_t now) {
  const auto& me = workers.at(worker);
  const bool late = now - me.contact.known_ns > late_ns;
  const auto at = [](const worker_view& w, std::int64_t time) -> std::uint64_t {
    const auto after = std::upper_bound(w.pace.clocks.begin(), w.pace.clocks.end(), time,
                                        [](auto t, const auto& c) { return t < c.first; });
    return after == w.pace.clocks.begin() ? 0 : std::prev(after)->second;
  };
  std::uint64_t lag = 0;
  for (const auto& [id, other] : workers) {
    if (id == worker || other.pace.clocks.empty() || me.pace.clocks.empty()) continue;
    const auto time = late ? now : std::min(me.contact.known_ns, other.contact.known_ns);
    const auto mine = at(me, time), theirs = at(other, time);
    if (theirs > mine) lag = std::max(lag, theirs - mine);
  }
  return lag;
}

void worker_contact::compare(const node_report& r, std::int64_t now) {
  if (r.asked_ns <= 0 || r.asked_ns > now) return;
  const auto e = compare_clocks(r.asked_ns, r.heard_ns, r.sent_ns, now);
  // The least delayed exchange gives the best estimate. Clocks drift, so an old estimate loses weight.
  if (uncertain_ns >= 0) uncertain_ns += uncertain_ns / 64 + 1000;
  if (uncertain_ns >= 0 && e.uncertain_ns > uncertain_ns) return;
  offset_ns = e.offset_ns;
  uncertain_ns = e.uncertain_ns;
}

void worker_graph::take(const node_report& r, const std::vector<std::string>& names,
                        std::uint64_t now_revision, bool run_ended) {
  for (const auto& a : r.actors)
    actors.push_back({names[a.name], names[a.type], 0, 0, now_revision, false});
  for (const auto& e : r.edges)
    edges.push_back({e.from, e.to, names[e.message], 0, 0, now_revision});
  const auto ended = run_ended ? std::vector<std::uint32_t>{} : r.ended;
  for (const auto a : ended) {
    actors[a].ended = true;
    actors[a].changed = now_revision;
  }
  for (const auto& n : r.renamed) {
    auto& a = actors[n.actor];
    a.name = names[n.name];
    a.handled = a.sent = 0;
    a.renamed = a.changed = now_revision;
    for (auto& e : edges)
      if (e.to == n.actor) e.messages = e.bytes = 0;
  }
  if (!r.actors.empty() || !r.edges.empty() || !ended.empty() || !r.renamed.empty())
    revision = now_revision;
  const std::unordered_set<std::uint32_t> gone(r.ended.begin(), r.ended.end());
  for (const auto& h : r.handled_by) {
    auto& a = actors[h.actor];
    if (a.ended && gone.count(h.actor) == 0) {  // another one of its name
      a.ended = false;
      revision = now_revision;
    }
    a.handled = h.messages;
    a.changed = now_revision;
  }
  for (const auto& c : r.counts) {
    auto& e = edges[c.edge];
    auto& to = actors[e.to];
    to.sent += c.messages - e.messages;
    to.changed = now_revision;
    e.messages = c.messages;
    e.bytes = c.bytes;
    e.changed = now_revision;
  }
}

void worker_spans::add(const node_report::span& s) {
  newest.push_back(s);
  if (newest.size() > kept_spans) newest.pop_front(), ++first;
}

void worker_pace::add(const node_report::span& s, const std::string& layer, span_phase phase,
                      std::int64_t now) {
  const bool forward = phase == span_phase::forward, backward = phase == span_phase::backward;
  if (forward && (s.clock > clock || clock_since_ns == 0)) {
    clock = s.clock;
    clock_since_ns = now;
    clocks.emplace_back(s.begin_ns, s.clock);
    if (clocks.size() > kept_clocks) clocks.pop_front();
  }
  if (forward || backward || phase == span_phase::test)
    computed_ns = std::max(computed_ns, s.end_ns);
  if (forward || backward) {
    if (busy.empty() || s.clock > busy.back().first) busy.emplace_back(s.clock, 0);
    // Replicas are not always at one clock.
    const auto at =
        std::find_if(busy.rbegin(), busy.rend(), [&](const auto& b) { return b.first <= s.clock; });
    if (at != busy.rend() && at->first == s.clock) at->second += s.end_ns - s.begin_ns;
    if (busy.size() > kept_clocks) busy.pop_front();
  }
  const auto raise = [&](std::optional<std::uint64_t>& newest) {
    newest = std::max(newest.value_or(0), s.clock);
  };
  if (backward) raise(updates[layer].handed_over);
  if (phase == span_phase::exchange) raise(updates[layer].fresh);
}

void worker_view::take(const node_report& r, std::uint64_t revision, bool run_ended,
                       std::int64_t now) {
  names.insert(names.end(), r.names.begin(), r.names.end());
  graph.take(r, names, revision, run_ended);
  for (const auto l : r.lanes) spans.lanes.push_back(names[l]);
  for (auto s : r.spans) {
    s.begin_ns -= contact.offset_ns;
    s.end_ns -= contact.offset_ns;
    pace.add(s, names[s.name], phase_of(names[s.phase]), now);
    spans.add(s);
  }
  spans.left_out += r.spans_left_out;
  links = r.links;
  if (r.replicas != 0) replicas = r.replicas;
  contact.heard_ns = now;
  contact.known_ns = r.sent_ns - contact.offset_ns;
}

}  // namespace poseidon
