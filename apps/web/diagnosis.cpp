#include "apps/web/diagnosis.hpp"

#include "actors/core/actor_names.hpp"

#include <algorithm>
#include <cstdio>
#include <tuple>

namespace poseidon {

namespace {

// Reports come once a second at least.
constexpr std::int64_t late_after_ns = 1'300'000'000;
constexpr std::int64_t said_again_ns = 60'000'000'000;
// Kernels are compared over this time, because a machine may be busy with other work for a moment.
constexpr std::int64_t compared_ns = 5'000'000'000, compared_at_least_ns = 3'000'000'000;
constexpr std::size_t clocks_to_compare = 5;
constexpr double slow = 1.5;
/// Less is lost in what one or the other kernel takes by chance, and nobody can do anything about it.
constexpr double least_ms_behind = 0.5;
constexpr std::int64_t usual_clocks = 3;

using state = cluster_view::state;

template <class T>
T lower_median(std::vector<T> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The usual time between two clocks of the worker; 0 if it is not known yet.
std::int64_t usual_clock_ns(const worker_view& w) {
  constexpr std::size_t newest = 16;
  std::vector<std::int64_t> took;
  for (auto i = w.pace.clocks.size(); i > 1 && took.size() < newest; --i)
    took.push_back(w.pace.clocks[i - 1].first - w.pace.clocks[i - 2].first);
  return took.empty() ? 0 : lower_median(std::move(took));
}

/// Whether the worker's last report is old: it is silent, or its reports wait behind frames of the training.
bool is_late(const state& s, std::uint32_t id, const worker_view& w, std::int64_t now) {
  return s.facts && id != s.facts->self && w.contact.heard_ns != 0 &&
         now - w.contact.heard_ns > late_after_ns;
}

bool is_silent(const state& s, std::uint32_t id, const worker_view& w, std::int64_t now) {
  return is_late(s, id, w, now) && now - w.contact.alive_ns > s.silent_after_ns();
}

/// A worker whose reports are late is not known to be stalled.
bool is_stalled(const state& s, std::uint32_t id, std::int64_t now, std::int64_t patience_ns) {
  const auto& w = s.workers.at(id);
  if (w.contact.lost || w.pace.computed_ns == 0 || is_late(s, id, w, now)) return false;
  const auto limit = std::max(patience_ns, usual_clocks * usual_clock_ns(w));
  if (w.contact.known_ns - w.pace.computed_ns <= limit) return false;
  return std::all_of(s.workers.begin(), s.workers.end(), [&](const auto& other) {
    const auto& [number, o] = other;
    return number == id || o.contact.heard_ns == 0 || o.contact.known_ns > w.pace.computed_ns ||
           is_late(s, number, o, now);
  });
}

const worker_pace::update* update_of(const worker_view& w, const std::string& layer) {
  const auto at = w.pace.updates.find(layer);
  return at == w.pace.updates.end() ? nullptr : &at->second;
}

/// The clock whose update is under way, if any.
std::optional<std::uint64_t> awaited(const worker_pace::update& u) {
  if (!u.handed_over || (u.fresh && *u.fresh >= *u.handed_over)) return std::nullopt;
  return u.fresh ? *u.fresh + 1 : *u.handed_over;
}

/// Bytes given to the link to `peer` and not yet written to its socket.
std::uint64_t backlog(const worker_view& w, std::uint32_t peer) {
  std::uint64_t given = 0, written = 0;
  const auto link = link_name(peer);
  for (const auto& e : w.graph.edges)
    if (e.message == "send_frame" && w.graph.actors[e.to].name == link) given += e.bytes;
  for (const auto& l : w.links)
    if (l.peer == peer) written += l.bytes_out;
  return given > written ? given - written : 0;
}

/// A data layer whose source has been asked for a batch and has not given it.
std::optional<std::string> starved_layer(const worker_view& w) {
  std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> asked_and_given;
  for (const auto& e : w.graph.edges) {
    if (e.message == "start_pass" && !w.graph.actors[e.to].ended)
      asked_and_given[e.to].first += e.messages;
    if (e.message == "batch_ready") asked_and_given[e.from].second += e.messages;
  }
  for (const auto& [actor, counts] : asked_and_given) {
    const auto name = parse_actor_name(w.graph.actors[actor].name);
    if (counts.first > counts.second && name.kind == "data_source") return name.layer;
  }
  return std::nullopt;
}

/// Names the worker for which the stalled one waits: one that has not done its part, silent ones first; else the only
/// other one; else the one whose link is full.
void name_peer(const state& s, std::int64_t now, stall_verdict& v) {
  std::optional<std::tuple<bool, std::uint64_t, std::uint32_t>> best;
  for (const auto& [id, w] : s.workers) {
    if (id == v.worker || w.contact.heard_ns == 0) continue;
    const bool silent = is_silent(s, id, w, now);
    const auto* u = update_of(w, v.layer);
    const auto done = u != nullptr && u->handed_over ? *u->handed_over + 1 : 0;
    if (!silent && (done > v.clock || is_late(s, id, w, now))) continue;
    const std::tuple candidate{!silent, done, id};
    if (!best || candidate < *best) best = candidate;
  }
  if (best) {
    const auto [heard, done, id] = *best;
    v.peer = id;
    v.peer_is_behind = done <= v.clock;
    if (!heard) v.silent_ns = now - s.workers.at(id).contact.heard_ns;
  }
  const auto& me = s.workers.at(v.worker);
  for (const auto& [id, w] : s.workers) {
    if (id == v.worker || (v.peer && *v.peer != id)) continue;
    const auto bytes = std::max(backlog(me, id), backlog(w, v.worker));
    if (!v.peer && (bytes > v.bytes || s.workers.size() == 2)) v.peer = id;
    if (v.peer == id) v.bytes = std::max(v.bytes, bytes);
  }
}

std::optional<stall_verdict> stall_of(const state& s, std::uint32_t id, std::int64_t now) {
  const auto& w = s.workers.at(id);
  stall_verdict v;
  v.worker = id;
  v.since_ns = w.pace.computed_ns;
  if (const auto layer = starved_layer(w)) {
    v.layer = *layer;
    v.phase = "data";
    v.clock = w.pace.clock;
    return v;
  }
  bool found = false;
  for (const auto& r : s.facts->routes) {  // in forward order
    const auto* u = update_of(w, r.layer);
    const auto clock = u != nullptr ? awaited(*u) : std::nullopt;
    if (!clock || (found && *clock >= v.clock)) continue;
    found = true;
    v.clock = *clock;
    v.layer = r.layer;
    v.route = r.route;
  }
  if (!found) return std::nullopt;  // a long kernel, or a change of routes
  v.phase = "update";
  name_peer(s, now, v);
  return v;
}

/// The stall that explains the others: a worker waits for its own data, or for a worker that does not wait itself.
std::optional<stall_verdict> root_of(const std::vector<stall_verdict>& stalls) {
  const auto waits = [&](std::uint32_t id) {
    return std::any_of(stalls.begin(), stalls.end(), [&](auto& v) { return v.worker == id; });
  };
  for (const auto& v : stalls)
    if (v.phase == "data") return v;
  for (const auto& v : stalls)
    if (v.peer && !waits(*v.peer)) return v;
  return stalls.empty() ? std::nullopt : std::optional(stalls.front());
}

/// How long the kernels of one clock take per replica; none if too little is known to compare.
std::optional<double> kernels_ms(const worker_view& w) {
  if (w.contact.lost || w.pace.busy.size() <= clocks_to_compare || w.pace.clocks.empty())
    return std::nullopt;
  const auto newest = w.pace.clocks.back().first;
  if (newest - w.pace.clocks.front().first < compared_at_least_ns) return std::nullopt;
  const auto first =
      std::lower_bound(w.pace.clocks.begin(), w.pace.clocks.end(), newest - compared_ns,
                       [](const auto& c, std::int64_t time) { return c.first < time; });
  std::vector<std::int64_t> took;
  // The newest may still run.
  for (auto b = std::next(w.pace.busy.rbegin()); b != w.pace.busy.rend(); ++b) {
    if (took.size() >= clocks_to_compare && b->first < first->second) break;
    took.push_back(b->second);
  }
  return static_cast<double>(lower_median(std::move(took))) / 1e6 / std::max(1u, w.replicas);
}

std::vector<straggler_verdict> stragglers_of(const state& s) {
  std::vector<std::pair<std::uint32_t, double>> all;
  std::vector<double> times;
  for (const auto& [id, w] : s.workers)
    if (const auto ms = kernels_ms(w)) {
      all.emplace_back(id, *ms);
      times.push_back(*ms);
    }
  std::vector<straggler_verdict> out;
  if (all.size() < 2) return out;
  const auto median = lower_median(times);
  for (const auto& [id, ms] : all)
    if (ms > slow * median && ms - median >= least_ms_behind) out.push_back({id, ms, median});
  return out;
}

std::string fixed(double value, int digits = 1) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string seconds(std::int64_t ns) {
  return fixed(static_cast<double>(ns) / 1e9) + " s";
}

std::string worker(std::uint32_t id) {
  return "worker " + std::to_string(id);
}

}  // namespace

diagnosis diagnose(const state& s, std::int64_t now, std::int64_t patience_ns) {
  diagnosis d;
  if (!s.facts || s.ended()) return d;
  std::vector<stall_verdict> stalls;
  for (const auto& [id, w] : s.workers)
    if (is_stalled(s, id, now, patience_ns))
      if (const auto v = stall_of(s, id, now)) stalls.push_back(*v);
  d.stall = root_of(stalls);
  if (d.stall) d.stall->clock *= s.facts->iterations_per_clock;
  d.stragglers = stragglers_of(s);
  return d;
}

std::string to_string(const stall_verdict& v, std::int64_t now) {
  const auto clock = " of iteration " + std::to_string(v.clock);
  auto out = worker(v.worker) + " has been stalled for " + seconds(now - v.since_ns) + ": ";
  if (v.phase == "data") return out + "the source of data layer " + v.layer + " gives no batch";
  out += "the update of " + v.layer + clock + " (" + v.route + ") has not arrived";
  if (v.peer) out += "; it waits for " + worker(*v.peer);
  if (v.silent_ns > 0)
    out += ", which has been silent for " + seconds(v.silent_ns);
  else if (v.peer_is_behind)
    out += ", which has not computed its part yet";
  if (v.bytes > 0)
    out +=
        "; " + fixed(static_cast<double>(v.bytes) / 1e6, 2) + " MB wait in the link between them";
  return out;
}

std::string to_string(const straggler_verdict& v) {
  return worker(v.worker) + " is slow: its kernels take " + fixed(v.ms) +
         " ms an iteration, the median of all workers is " + fixed(v.median_ms) + " ms";
}

json_object diagnosis_json(const diagnosis& d, std::int64_t now) {
  json_array texts, slow_workers;
  if (d.stall) texts.put(to_string(*d.stall, now));
  for (const auto& v : d.stragglers) {
    texts.put(to_string(v));
    slow_workers.put(
        json_object().put("worker", v.worker).put("ms", v.ms).put("median_ms", v.median_ms));
  }
  json_object out;
  out.put("text", texts);
  if (d.stall) {
    const auto& v = *d.stall;
    json_object stall;
    stall.put("worker", v.worker).put("clock", v.clock).put("layer", v.layer);
    stall.put("phase", v.phase).put("route", v.route);
    if (v.peer) stall.put("peer", *v.peer);
    stall.put("bytes", v.bytes).put("since_ms", (now - v.since_ns) / 1000000);
    out.put("stall", stall);
  }
  return out.put("stragglers", slow_workers);
}

bool stall_doctor::is_new(const std::string& verdict, std::int64_t now) {
  const auto [at, fresh] = said_.try_emplace(verdict, now);
  const bool again = !fresh && now - at->second > said_again_ns;
  at->second = now;
  return fresh || again;
}

void stall_doctor::look(cluster_view& view, std::int64_t now) {
  const auto d = view.read([&](const state& s) { return diagnose(s, now); });
  if (d.stall) {
    const auto& v = *d.stall;
    const auto peer = v.peer ? std::to_string(*v.peer) : "";
    if (is_new(std::to_string(v.worker) + " " + v.phase + " " + v.layer + " " + peer, now))
      view.history().note("stall: " + to_string(v, now));
  }
  for (const auto& v : d.stragglers)
    if (is_new("slow " + std::to_string(v.worker), now))
      view.history().note("straggler: " + to_string(v));
}

}  // namespace poseidon
