#include "actors/telemetry/cluster_view.hpp"

#include "actors/core/span_phase.hpp"
#include "messages/wire/codec.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace poseidon {

namespace {

// A member without a report for this long is shown as silent; reports come once a second at least.
constexpr std::int64_t silent_ns = 3'500'000'000;
constexpr std::size_t kept_clocks = 1024;  // those of the last seconds
// A worker without a report for this long is taken not to have moved since its last report.
constexpr std::int64_t late_ns = 2'000'000'000;
constexpr std::size_t kept_spans = 60000;  // per worker: some hundred iterations of a deep net

void check(const char* field, std::uint64_t got, std::uint64_t limit) {
  if (got >= limit)
    throw bad_frame("report", field, std::to_string(got), "less than " + std::to_string(limit));
}

void check_follows(const char* field, std::uint64_t got, std::size_t known) {
  if (got != known) throw bad_frame("report", field, std::to_string(got), std::to_string(known));
}

/// Checks the whole report before any of it is added.
void check_fits(const worker_view& w, const node_report& r) {
  check_follows("first name", r.first_name, w.names.size());
  check_follows("first actor", r.first_actor, w.actors.size());
  check_follows("first edge", r.first_edge, w.edges.size());
  check_follows("first lane", r.first_lane, w.lanes.size());
  const auto names = w.names.size() + r.names.size();
  const auto actors = w.actors.size() + r.actors.size();
  const auto lanes = w.lanes.size() + r.lanes.size();
  const auto edges = w.edges.size() + r.edges.size();
  for (const auto& a : r.actors) check("name", a.name, names), check("type", a.type, names);
  for (const auto& e : r.edges) {
    check("edge's sender", e.from, actors);
    check("edge's receiver", e.to, actors);
    check("message", e.message, names);
  }
  for (const auto l : r.lanes) check("lane's name", l, names);
  for (const auto& h : r.handled_by) check("actor", h.actor, actors);
  for (const auto a : r.ended) check("ended actor", a, actors);
  for (const auto& c : r.counts) check("edge", c.edge, edges);
  for (const auto& s : r.spans)
    check("lane", s.lane, lanes), check("layer", s.name, names), check("phase", s.phase, names);
}

}  // namespace

clock_estimate compare_clocks(std::int64_t asked_ns, std::int64_t heard_ns, std::int64_t sent_ns,
                              std::int64_t now) {
  // The other node's time at the middle of the exchange minus ours. The time under way may all have been one way.
  const auto ours = asked_ns + (now - asked_ns) / 2;
  const auto theirs = heard_ns + (sent_ns - heard_ns) / 2;
  const auto on_the_way = (now - asked_ns) - (sent_ns - heard_ns);
  return {theirs - ours, std::max<std::int64_t>(0, on_the_way / 2)};
}

const char* condition_of(const worker_view& w, std::int64_t now) {
  if (w.lost) return "lost";
  if (w.heard_ns == 0) return "unheard";
  return now - std::max(w.heard_ns, w.alive_ns) > silent_ns ? "silent" : "up";
}

std::uint64_t lag_of(const std::map<std::uint32_t, worker_view>& workers, std::uint32_t worker,
                     std::int64_t now) {
  const auto& me = workers.at(worker);
  const bool late = now - me.known_ns > late_ns;
  const auto at = [](const worker_view& w, std::int64_t time) -> std::uint64_t {
    const auto after = std::upper_bound(w.clocks.begin(), w.clocks.end(), time,
                                        [](auto t, const auto& c) { return t < c.first; });
    return after == w.clocks.begin() ? 0 : std::prev(after)->second;
  };
  std::uint64_t lag = 0;
  for (const auto& [id, other] : workers) {
    if (id == worker || other.clocks.empty() || me.clocks.empty()) continue;
    const auto time = late ? now : std::min(me.known_ns, other.known_ns);
    const auto mine = at(me, time), theirs = at(other, time);
    if (theirs > mine) lag = std::max(lag, theirs - mine);
  }
  return lag;
}

cluster_view::cluster_view(std::shared_ptr<edge_book> edges, std::shared_ptr<trace_log> trace,
                           std::shared_ptr<run_history> history)
    : own_(std::move(edges), std::move(trace)), history_(std::move(history)) {}

void cluster_view::begin(run_facts facts) {
  const std::lock_guard lock(mutex_);
  for (std::uint32_t w = 0; w < facts.members.size(); ++w) state_.workers[w];
  state_.workers[facts.self].replicas = facts.replicas;
  state_.phase = "running";
  state_.facts = std::move(facts);
  ++state_.revision;
  for (auto& [id, w] : state_.workers) w.graph_revision = state_.revision;
}

void cluster_view::sample() {
  const std::lock_guard in_order(sampling_);
  auto r = own_.take_new();
  const std::lock_guard lock(mutex_);
  const auto self = state_.facts ? state_.facts->self : 0;
  r.replicas = state_.facts ? state_.facts->replicas : 0;
  // A joiner learns its number with its view: until then it is worker 0 here.
  if (self != 0 && state_.workers[self].actors.empty() && r.first_actor != 0)
    std::swap(state_.workers[self], state_.workers[0]);
  state_.workers[self].uncertain_ns = 0;
  note_who_lives(state_.workers[self].links, r.links, r.sent_ns);
  take_locked(self, r, r.sent_ns);
  std::uint64_t out = 0, in = 0;
  for (const auto& l : r.links) out += l.bytes_out, in += l.bytes_in;
  if (state_.facts && state_.facts->members.size() > 1) history_->carried(out, in);
}

/// Reports go after everything that trains, so over a slow link they come late: a worker whose bytes still come is not
/// silent.
void cluster_view::note_who_lives(const std::vector<node_report::link>& before,
                                  const std::vector<node_report::link>& now_seen,
                                  std::int64_t now) {
  for (const auto& l : now_seen) {
    const auto old =
        std::find_if(before.begin(), before.end(), [&](const auto& b) { return b.peer == l.peer; });
    if (old == before.end() || l.bytes_in > old->bytes_in) state_.workers[l.peer].alive_ns = now;
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
  for (auto i = from.actors; i < w.actors.size(); ++i)
    r.actors.push_back({places.at(w.actors[i].name), places.at(w.actors[i].type)});
  for (auto i = from.edges; i < w.edges.size(); ++i)
    r.edges.push_back({w.edges[i].from, w.edges[i].to, places.at(w.edges[i].message)});
  for (auto i = from.lanes; i < w.lanes.size(); ++i) r.lanes.push_back(places.at(w.lanes[i]));
  for (std::uint32_t i = 0; i < w.actors.size(); ++i)
    if (w.actors[i].changed > from.revision) {
      r.handled_by.push_back({i, w.actors[i].handled});
      if (w.actors[i].ended) r.ended.push_back(i);
    }
  for (std::uint32_t i = 0; i < w.edges.size(); ++i)
    if (w.edges[i].changed > from.revision)
      r.counts.push_back({i, w.edges[i].messages, w.edges[i].bytes});
  const auto end = w.first_span + w.spans.size();
  const auto begin =
      std::max({from.spans, w.first_span, end - std::min<std::uint64_t>(end, max_report_spans)});
  r.spans.assign(w.spans.begin() + static_cast<std::ptrdiff_t>(begin - w.first_span),
                 w.spans.end());
  r.spans_left_out = begin - from.spans + w.spans_left_out - from.spans_left_out;
  r.links = w.links;
  from = {size(w.names), size(w.actors),   size(w.edges),  size(w.lanes),
          end,           w.spans_left_out, state_.revision};
  r.sent_ns = now_ns();
  return r;
}

void cluster_view::take(worker_id from, const node_report& r) {
  const auto now = now_ns();
  const std::lock_guard lock(mutex_);
  auto& w = state_.workers[value(from)];
  check_fits(w, r);
  if (r.asked_ns > 0 && r.asked_ns <= now) {
    const auto e = compare_clocks(r.asked_ns, r.heard_ns, r.sent_ns, now);
    // The least delayed exchange gives the best estimate. Clocks drift, so an old estimate loses weight.
    if (w.uncertain_ns >= 0) w.uncertain_ns += w.uncertain_ns / 64 + 1000;
    if (w.uncertain_ns < 0 || e.uncertain_ns <= w.uncertain_ns) {
      w.offset_ns = e.offset_ns;
      w.uncertain_ns = e.uncertain_ns;
    }
  }
  take_locked(value(from), r, now);
}

void cluster_view::take_locked(std::uint32_t worker, const node_report& r, std::int64_t now) {
  auto& w = state_.workers[worker];
  const auto revision = ++state_.revision;
  w.names.insert(w.names.end(), r.names.begin(), r.names.end());
  for (const auto& a : r.actors)
    w.actors.push_back({w.names[a.name], w.names[a.type], 0, 0, revision, false});
  for (const auto l : r.lanes) w.lanes.push_back(w.names[l]);
  for (const auto& e : r.edges)
    w.edges.push_back({e.from, e.to, w.names[e.message], 0, 0, revision});
  // After the run has ended its last graph stays.
  const auto ended = state_.ended ? std::vector<std::uint32_t>{} : r.ended;
  for (const auto a : ended) {
    w.actors[a].ended = true;
    w.actors[a].changed = revision;
  }
  if (!r.actors.empty() || !r.edges.empty() || !ended.empty()) w.graph_revision = revision;
  for (const auto& h : r.handled_by) {
    w.actors[h.actor].handled = h.messages;
    w.actors[h.actor].changed = revision;
  }
  for (const auto& c : r.counts) {
    auto& e = w.edges[c.edge];
    auto& to = w.actors[e.to];
    to.sent += c.messages - e.messages;
    to.changed = revision;
    e.messages = c.messages;
    e.bytes = c.bytes;
    e.changed = revision;
  }
  for (auto s : r.spans) {
    s.begin_ns -= w.offset_ns;
    s.end_ns -= w.offset_ns;
    take_span(w, s, now);
    w.spans.push_back(s);
  }
  while (w.spans.size() > kept_spans) w.spans.pop_front(), ++w.first_span;
  w.spans_left_out += r.spans_left_out;
  w.links = r.links;
  if (r.replicas != 0) w.replicas = r.replicas;
  w.heard_ns = now;
  w.known_ns = r.sent_ns - w.offset_ns;
}

/// Adds what a span shows of the worker's progress, in this node's time.
void cluster_view::take_span(worker_view& w, const node_report::span& s, std::int64_t now) {
  const auto phase = phase_of(w.names[s.phase]);
  const bool forward = phase == span_phase::forward, backward = phase == span_phase::backward;
  if (forward && (s.clock > w.clock || w.clock_since_ns == 0)) {
    w.clock = s.clock;
    w.clock_since_ns = now;
    w.clocks.emplace_back(s.begin_ns, s.clock);
    if (w.clocks.size() > kept_clocks) w.clocks.pop_front();
  }
  if (forward || backward || phase == span_phase::test)
    w.computed_ns = std::max(w.computed_ns, s.end_ns);
  if (forward || backward) {
    if (w.busy.empty() || s.clock > w.busy.back().first) w.busy.emplace_back(s.clock, 0);
    // Replicas are not always at one clock.
    const auto at = std::find_if(w.busy.rbegin(), w.busy.rend(),
                                 [&](const auto& b) { return b.first <= s.clock; });
    if (at != w.busy.rend() && at->first == s.clock) at->second += s.end_ns - s.begin_ns;
    if (w.busy.size() > kept_clocks) w.busy.pop_front();
  }
  const auto raise = [&](std::optional<std::uint64_t>& clock) {
    clock = std::max(clock.value_or(0), s.clock);
  };
  if (backward) raise(w.updates[w.names[s.name]].handed_over);
  if (phase == span_phase::exchange) raise(w.updates[w.names[s.name]].fresh);
}

void cluster_view::lost(worker_id who, const std::string& why) {
  const std::lock_guard lock(mutex_);
  auto& w = state_.workers[value(who)];
  w.lost = true;
  w.why_lost = why;
  ++state_.revision;
}

void cluster_view::ended(const std::string& error) {
  history_->ended(error);
  const std::lock_guard lock(mutex_);
  state_.ended = true;
  state_.phase = error.empty() ? "ended" : "ended: " + error;
  ++state_.revision;
}

}  // namespace poseidon
