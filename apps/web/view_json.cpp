#include "apps/web/view_json.hpp"

#include "actors/telemetry/living_graph.hpp"
#include "apps/web/diagnosis.hpp"
#include "data/batch_shares.hpp"
#include "models/json.hpp"

#include <algorithm>

namespace poseidon {

namespace {

using state = cluster_view::state;

std::string num(std::uint64_t v) {
  return std::to_string(v);
}

const worker_view* find(const state& s, std::uint32_t worker) {
  const auto at = s.workers.find(worker);
  return at == s.workers.end() ? nullptr : &at->second;
}

std::string run_json(const state& s, std::uint32_t worker) {
  const auto facts = s.facts.value_or(run_facts{});
  return "{\"model\":" + json_text(facts.model) + ",\"node\":" + num(facts.self) +
         ",\"worker\":" + num(worker) +
         ",\"nodes\":" + num(std::max<std::size_t>(1, facts.members.size())) +
         ",\"first_clock\":" + num(facts.first_clock) + ",\"last_clock\":" + num(facts.last_clock) +
         ",\"staleness\":" + num(facts.staleness) +
         ",\"images_per_clock\":" + num(facts.images_per_clock) +
         ",\"phase\":" + json_text(s.phase) + "}";
}

std::string routes_json(const state& s) {
  std::string out = "[";
  json_comma comma;
  if (s.facts)
    for (const auto& r : s.facts->routes) {
      out += comma() + ("{\"layer\":" + json_text(r.layer)) + ",\"route\":" + json_text(r.route) +
             ",\"wire\":" + json_text(r.wire) + ",\"why\":" + json_text(r.why) +
             ",\"bytes\":" + num(r.bytes);
      if (r.server_ms >= 0)
        out += ",\"server_ms\":" + json_number(r.server_ms) +
               ",\"factors_ms\":" + json_number(r.factors_ms);
      out += "}";
    }
  return out + "]";
}

std::string node_json(std::size_t place, const actor_graph::node& n) {
  auto out = "\n{\"id\":" + num(place) + ",\"name\":" + json_text(n.name) +
             ",\"kind\":" + json_text(n.kind) + ",\"group\":" + json_text(n.group);
  if (!n.type.empty()) out += ",\"type\":" + json_text(n.type);
  if (!n.card.empty()) out += ",\"card\":" + json_text(n.card);
  if (n.replica >= 0) out += ",\"replica\":" + std::to_string(n.replica);
  if (!n.tops.empty()) out += ",\"tops\":" + json_text(n.tops);
  if (n.params != 0) out += ",\"params\":" + std::to_string(n.params);
  if (n.chunk_bytes != 0) out += ",\"chunk_bytes\":" + num(n.chunk_bytes);
  return out + "}";
}

std::string graph_of(const state& s, std::uint32_t worker) {
  const auto* w = find(s, worker);
  const auto living = living_graph_of(s, worker);
  auto out = "{\"schema\":1,\"run\":" + run_json(s, worker) +
             ",\"rev\":" + num(w != nullptr ? w->graph_revision : 0) + ",\"groups\":[";
  json_comma next_group, next_node, next_edge;
  for (const auto& g : living.graph.groups)
    out += next_group() + ("{\"id\":" + json_text(g.id)) + ",\"label\":" + json_text(g.label) +
           ",\"order\":" + num(g.order) + "}";
  out += "],\"nodes\":[";
  for (const auto& n : living.graph.actors) out += next_node() + node_json(living.actors[n.id], n);
  out += "],\"edges\":[";
  for (const auto& e : living.graph.edges) {
    out += next_edge() + ("\n{\"id\":" + std::to_string(living.edges[e.id])) +
           ",\"src\":" + num(living.actors[e.src]) + ",\"dst\":" + num(living.actors[e.dst]) +
           ",\"message\":" + json_text(e.message) + ",\"kind\":\"" +
           std::string(to_string(e.kind)) + "\"";
    if (e.bytes != 0) out += ",\"bytes\":" + num(e.bytes);
    out += "}";
  }
  return out + "],\"routes\":" + routes_json(s) + "}";
}

std::string members_json(const state& s, std::int64_t now) {
  std::string out = "[";
  json_comma comma;
  for (const auto& [id, w] : s.workers) {
    const auto address =
        s.facts && id < s.facts->members.size() ? s.facts->members[id] : std::string{};
    const bool heard = w.heard_ns != 0;
    const auto age = heard ? now - w.heard_ns : 0;
    std::uint64_t out_bytes = 0, in_bytes = 0, edge_out = 0;
    for (const auto& l : w.links) out_bytes += l.bytes_out, in_bytes += l.bytes_in;
    for (const auto& e : w.edges)
      if (e.message == "send_frame") edge_out += e.bytes;
    out += comma() + ("{\"id\":" + num(id)) + ",\"address\":" + json_text(address) +
           ",\"state\":\"" + condition_of(w, now) + "\"";
    if (w.lost) out += ",\"why\":" + json_text(w.why_lost);
    if (s.facts && id < s.facts->shares.size())
      out +=
          ",\"share\":" + json_text(describe_share(s.facts->shares[id], s.facts->images_per_clock));
    if (heard)
      out += ",\"clock\":" + num(w.clock) + ",\"lag\":" + num(lag_of(s.workers, id, now)) +
             ",\"age_ms\":" + std::to_string(age / 1000000) +
             ",\"stuck_ms\":" + std::to_string((now - w.clock_since_ns) / 1000000);
    const auto living = static_cast<std::uint64_t>(
        std::count_if(w.actors.begin(), w.actors.end(), [](auto& a) { return !a.ended; }));
    if (w.uncertain_ns >= 0)
      out += ",\"offset_us\":" + json_number(static_cast<double>(w.offset_ns) / 1e3) +
             ",\"uncertain_us\":" + json_number(static_cast<double>(w.uncertain_ns) / 1e3);
    out += ",\"actors\":" + num(living) + ",\"replicas\":" + num(w.replicas) +
           ",\"bytes_out\":" + num(out_bytes) + ",\"bytes_in\":" + num(in_bytes) +
           ",\"edge_bytes_out\":" + num(edge_out) + ",\"links\":[";
    json_comma next_link;
    for (const auto& l : w.links)
      out +=
          next_link() + ("[" + num(l.peer)) + "," + num(l.bytes_out) + "," + num(l.bytes_in) + "]";
    out += "]}";
  }
  return out + "]";
}

std::string tick_of(const state& s, std::uint32_t worker, std::uint64_t& since) {
  const auto now = now_ns();
  const auto* w = find(s, worker);
  auto out =
      "{\"worker\":" + num(worker) + ",\"rev\":" + num(w != nullptr ? w->graph_revision : 0) +
      ",\"seq\":" + num(s.revision) +
      ",\"t\":" + std::to_string((w != nullptr && w->heard_ns != 0 ? w->heard_ns : now) / 1000) +
      ",\"phase\":" + json_text(s.phase) + ",\"n\":[";
  json_comma next_node, next_edge;
  for (std::size_t i = 0; w != nullptr && i < w->actors.size(); ++i) {
    const auto& a = w->actors[i];
    if (!a.ended && a.changed > since)
      out += next_node() + ("[" + num(i)) + "," + num(a.waiting()) + "," + num(a.handled) + "]";
  }
  out += "],\"e\":[";
  for (std::size_t i = 0; w != nullptr && i < w->edges.size(); ++i) {
    const auto& e = w->edges[i];
    if (e.changed > since)
      out += next_edge() + ("[" + num(i)) + "," + num(e.messages) + "," + num(e.bytes) + "]";
  }
  since = s.revision;
  return out + "],\"members\":" + members_json(s, now) +
         ",\"doctor\":" + diagnosis_json(diagnose(s, now), now) + "}";
}

template <class List>
std::string told_from(const List& texts, std::size_t& from) {
  std::string out = "[";
  json_comma comma;
  for (; from < texts.size(); ++from)
    out += comma() + ("[" + num(from)) + "," + json_text(texts[from]) + "]";
  return out + "]";
}

/// Begin and end are rounded each for itself, so that neighbours do not overlap.
std::pair<std::int64_t, std::int64_t> microseconds(const node_report::span& s) {
  return {s.begin_ns / 1000, s.end_ns / 1000 - s.begin_ns / 1000};
}

}  // namespace

std::string graph_json(const cluster_view& view, std::uint32_t worker) {
  return view.read([&](const state& s) { return graph_of(s, worker); });
}

std::string tick_json(const cluster_view& view, std::uint32_t worker, std::uint64_t& since) {
  return view.read([&](const state& s) { return tick_of(s, worker, since); });
}

std::string spans_json(const cluster_view& view, std::uint32_t worker, span_place& from,
                       std::size_t most) {
  return view.read([&](const state& s) -> std::string {
    const auto* w = find(s, worker);
    if (w == nullptr) return {};
    const auto end = w->first_span + w->spans.size();
    auto at = std::max({from.spans, w->first_span, end - std::min<std::uint64_t>(end, most)});
    if (at >= end) return {};
    auto out = "{\"worker\":" + num(worker) + ",\"left_out\":" + num(at - from.spans) +
               ",\"names\":" + told_from(w->names, from.names) +
               ",\"lanes\":" + told_from(w->lanes, from.lanes) + ",\"rows\":[";
    json_comma comma;
    for (; at < end; ++at) {
      const auto& x = w->spans[at - w->first_span];
      const auto [begin, took] = microseconds(x);
      out += comma() + ("[" + num(x.lane)) + "," + num(x.name) + "," + num(x.phase) + "," +
             std::to_string(begin) + "," + std::to_string(took) + "," + num(x.clock) + "," +
             num(x.bytes) + "]";
    }
    from.spans = end;
    return out + "]}";
  });
}

std::string chrome_trace_json(const cluster_view& view, std::uint64_t clocks) {
  return view.read([&](const state& s) {
    std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
    json_comma comma;
    for (const auto& [id, w] : s.workers) {
      const auto pid = "\"pid\":" + num(id);
      out += comma() + ("\n{\"ph\":\"M\"," + pid) +
             ",\"name\":\"process_name\",\"args\":{\"name\":\"worker " + num(id) + "\"}}";
      for (std::size_t l = 0; l < w.lanes.size(); ++l)
        out += ",\n{\"ph\":\"M\"," + pid + ",\"tid\":" + num(l) +
               ",\"name\":\"thread_name\",\"args\":{\"name\":" + json_text(w.lanes[l]) + "}}";
      for (const auto& x : w.spans) {
        if (clocks > 0 && x.clock + clocks <= w.clock) continue;
        const auto [begin, took] = microseconds(x);
        out += ",\n{\"ph\":\"X\"," + pid + ",\"tid\":" + num(x.lane) +
               ",\"name\":" + json_text(w.names[x.name]) +
               ",\"cat\":" + json_text(w.names[x.phase]) + ",\"ts\":" + std::to_string(begin) +
               ",\"dur\":" + std::to_string(took) + ",\"args\":{\"clock\":" + num(x.clock);
        if (x.chunk >= 0) out += ",\"chunk\":" + std::to_string(x.chunk);
        if (x.bytes > 0) out += ",\"bytes\":" + num(x.bytes);
        out += "}}";
      }
    }
    return out + "\n]}\n";
  });
}

std::string recording_json(const cluster_view& view) {
  run_history::place from;
  auto history = view.history().json(from);
  if (history.empty()) history = "null";
  return view.read([&](const state& s) {
    const auto self = s.facts ? s.facts->self : 0;
    std::uint64_t since = 0;
    return "{\"graph\":" + graph_of(s, self) + ",\"tick\":" + tick_of(s, self, since) +
           ",\"history\":" + history + "}";
  });
}

std::string health_json(const cluster_view& view) {
  return view.read([&](const state& s) {
    const auto self = s.facts ? s.facts->self : 0;
    const auto* w = find(s, self);
    auto out = "{\"ok\":true,\"phase\":" + json_text(s.phase) + ",\"worker\":" + num(self);
    if (w != nullptr && w->clock_since_ns != 0)
      out += ",\"clock\":" + num(w->clock) +
             ",\"stuck_s\":" + json_number(static_cast<double>(now_ns() - w->clock_since_ns) / 1e9);
    return out + "}\n";
  });
}

}  // namespace poseidon
