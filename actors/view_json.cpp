#include "actors/view_json.hpp"

#include "actors/diagnosis.hpp"
#include "actors/json_text.hpp"

#include <algorithm>
#include <tuple>

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

/// The plan's word on an actor; one that the plan does not know is the node's own business.
std::string node_json(std::size_t id, const worker_view::actor& a, const actor_graph::node* n) {
  auto out = "\n{\"id\":" + num(id) + ",\"name\":" + json_text(a.name) +
             ",\"kind\":" + json_text(a.type) +
             ",\"group\":" + json_text(n != nullptr ? n->group : "control");
  if (n == nullptr) return out + "}";
  if (!n->type.empty()) out += ",\"type\":" + json_text(n->type);
  if (!n->card.empty()) out += ",\"card\":" + json_text(n->card);
  if (n->replica >= 0) out += ",\"replica\":" + std::to_string(n->replica);
  if (!n->tops.empty()) out += ",\"tops\":" + json_text(n->tops);
  if (n->params != 0) out += ",\"params\":" + std::to_string(n->params);
  if (n->chunk_bytes != 0) out += ",\"chunk_bytes\":" + num(n->chunk_bytes);
  return out + "}";
}

std::string edge_json(long id, std::size_t src, std::size_t dst, std::string_view message,
                      std::string_view kind, std::uint64_t bytes) {
  auto out = "\n{\"id\":" + std::to_string(id) + ",\"src\":" + num(src) + ",\"dst\":" + num(dst) +
             ",\"message\":" + json_text(message) + ",\"kind\":\"" + std::string(kind) + "\"";
  if (bytes != 0) out += ",\"bytes\":" + num(bytes);
  return out + "}";
}

std::string graph_of(const state& s, std::uint32_t worker) {
  const auto* w = find(s, worker);
  auto out = "{\"schema\":1,\"run\":" + run_json(s, worker) +
             ",\"rev\":" + num(w != nullptr ? w->graph_revision : 0);
  const auto plan = s.facts && w != nullptr && w->replicas > 0 ? s.facts->plan(worker, w->replicas)
                                                               : actor_graph{};
  out += ",\"groups\":[";
  json_comma next_group;
  for (const auto& g : plan.groups)
    out += next_group() + ("{\"id\":" + json_text(g.id)) + ",\"label\":" + json_text(g.label) +
           ",\"order\":" + num(g.order) + "}";
  out += "],\"nodes\":[";
  std::map<std::string_view, const actor_graph::node*> planned;
  for (const auto& n : plan.actors) planned[n.name] = &n;
  std::map<std::string_view, std::size_t> place;
  json_comma next_node;
  static const std::vector<worker_view::actor> nobody;
  const auto& actors = w != nullptr ? w->actors : nobody;
  for (std::size_t i = 0; i < actors.size(); ++i) {
    if (actors[i].ended) continue;
    place[actors[i].name] = i;
    const auto n = planned.find(actors[i].name);
    out += next_node() + node_json(i, actors[i], n == planned.end() ? nullptr : n->second);
  }
  out += "],\"edges\":[";
  using ends = std::tuple<std::size_t, std::size_t, std::string_view>;
  std::map<ends, const actor_graph::edge*> planned_edges;
  for (const auto& e : plan.edges) {
    const auto from = place.find(plan.actors[e.src].name), to = place.find(plan.actors[e.dst].name);
    if (from != place.end() && to != place.end())
      planned_edges[{from->second, to->second, e.message}] = &e;
  }
  json_comma next_edge;
  for (std::size_t i = 0; w != nullptr && i < w->edges.size(); ++i) {
    const auto& e = w->edges[i];
    if (actors[e.from].ended || actors[e.to].ended) continue;
    const auto p = planned_edges.find({e.from, e.to, e.message});
    const bool known = p != planned_edges.end();
    out += next_edge() +
           edge_json(static_cast<long>(i), e.from, e.to, e.message,
                     to_string(known ? p->second->kind : actor_graph::edge_kind::control),
                     known ? p->second->bytes : 0);
    if (known) planned_edges.erase(p);
  }
  for (const auto& [at, e] : planned_edges)
    out += next_edge() + edge_json(-1, std::get<0>(at), std::get<1>(at), e->message,
                                   to_string(e->kind), e->bytes);
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
