#include "apps/web/view_json.hpp"

#include "actors/core/trace_json.hpp"
#include "actors/telemetry/living_graph.hpp"
#include "apps/web/diagnosis.hpp"
#include "apps/web/lag.hpp"
#include "apps/web/link_traffic.hpp"
#include "data/batch_shares.hpp"
#include "models/json.hpp"

#include <algorithm>

namespace poseidon {

namespace {

using state = cluster_view::state;

const worker_view* find(const state& s, std::uint32_t worker) {
  const auto at = s.workers.find(worker);
  return at == s.workers.end() ? nullptr : &at->second;
}

}  // namespace

void put_stage(json_object& out, const cluster_view::state& s) {
  out.put("stage", to_string(s.stage));
  out.put("why", s.why.empty() ? std::nullopt : std::optional(s.why));
}

json_array witnesses_json(const run_facts& facts) {
  json_array out;
  for (const auto& [id, address] : facts.witnesses)
    out.put(json_object().put("witness", id).put("address", address));
  return out;
}

namespace {

json_object run_json(const state& s, std::uint32_t worker) {
  const auto facts = s.facts.value_or(run_facts{});
  json_object out;
  out.put("model", facts.model).put("node", facts.self).put("worker", worker);
  out.put("nodes", std::max<std::size_t>(1, facts.members.size()));
  out.put("first_clock", facts.first_clock).put("last_clock", facts.last_clock);
  out.put("staleness", facts.staleness).put("images_per_clock", facts.images_per_clock);
  if (!facts.promise.empty()) out.put("promise", facts.promise);
  put_stage(out, s);
  return out;
}

json_array routes_json(const state& s) {
  json_array out;
  if (!s.facts) return out;
  for (const auto& r : s.facts->routes) {
    json_object row;
    row.put("layer", r.layer).put("route", r.route).put("wire", r.wire).put("why", r.why);
    row.put("bytes", r.bytes);
    if (r.server_ms >= 0) row.put("server_ms", r.server_ms).put("factors_ms", r.factors_ms);
    out.put(row);
  }
  return out;
}

json_object node_json(std::size_t place, const actor_graph::node& n) {
  json_object out;
  out.put("id", place).put("name", n.name).put("kind", n.kind).put("group", n.group);
  if (!n.type.empty()) out.put("type", n.type);
  if (!n.card.empty()) out.put("card", n.card);
  if (n.replica >= 0) out.put("replica", n.replica);
  if (!n.tops.empty()) out.put("tops", n.tops);
  if (n.params != 0) out.put("params", n.params);
  if (n.chunk_bytes != 0) out.put("chunk_bytes", n.chunk_bytes);
  return out;
}

json_object edge_json(const living_graph& living, const actor_graph::edge& e) {
  json_object out;
  out.put("id", living.edges[e.id]);
  out.put("src", living.actors[e.src]).put("dst", living.actors[e.dst]);
  out.put("message", e.message).put("kind", to_string(e.kind));
  if (e.bytes != 0) out.put("bytes", e.bytes);
  return out;
}

json_object graph_of(const state& s, std::uint32_t worker) {
  const auto* w = find(s, worker);
  const auto living = living_graph_of(s, worker);
  json_array groups, nodes(json_layout::lines), edges(json_layout::lines);
  for (const auto& g : living.graph.groups)
    groups.put(json_object().put("id", g.id).put("label", g.label).put("order", g.order));
  for (const auto& n : living.graph.actors) nodes.put(node_json(living.actors[n.id], n));
  for (const auto& e : living.graph.edges) edges.put(edge_json(living, e));
  json_object out;
  out.put("schema", 1).put("run", run_json(s, worker));
  out.put("rev", w != nullptr ? w->graph.revision : 0);
  out.put("groups", groups).put("nodes", nodes).put("edges", edges);
  return out.put("routes", routes_json(s));
}

json_object member_json(const state& s, std::uint32_t id, const worker_view& w, std::int64_t now) {
  json_object out;
  out.put("id", id);
  out.put("address", s.facts ? s.facts->address_of(id) : "");
  out.put("state", condition_of(w, now, s.silent_after_ns()));
  if (w.contact.lost) out.put("why", w.contact.why_lost);
  out.put("leads", s.facts && s.facts->members.size() > 1 && id == s.facts->leader);
  if (s.facts && s.facts->worker_of(id) < s.facts->shares.size())
    out.put("share",
            describe_share(s.facts->shares[s.facts->worker_of(id)], s.facts->images_per_clock));
  if (w.contact.heard_ns != 0) {
    out.put("clock", shown_clock(s, w)).put("lag", shown_lag(s, id, now));
    out.put("age_ms", (now - w.contact.heard_ns) / 1000000);
    out.put("stuck_ms", (now - w.pace.clock_since_ns) / 1000000);
  }
  if (w.contact.uncertain_ns >= 0)
    out.put("offset_us", static_cast<double>(w.contact.offset_ns) / 1e3)
        .put("uncertain_us", static_cast<double>(w.contact.uncertain_ns) / 1e3);
  out.put("actors", std::count_if(w.graph.actors.begin(), w.graph.actors.end(),
                                  [](const auto& a) { return !a.ended; }));
  out.put("replicas", w.replicas);
  const auto traffic = traffic_of(s, id);
  std::uint64_t edge_out = 0;
  json_array links;
  for (const auto& l : w.links) links.put(json_array::of(l.peer, l.bytes_out, l.bytes_in));
  for (const auto& e : w.graph.edges)
    if (e.message == "send_frame") edge_out += e.bytes;
  out.put("bytes_out", traffic.out + traffic.probes_out);
  out.put("bytes_in", traffic.in + traffic.probes_in).put("edge_bytes_out", edge_out);
  out.put("probe_bytes_out", traffic.probes_out);
  return out.put("links", links);
}

json_object tick_of(const state& s, std::uint32_t worker, std::uint64_t& since) {
  static const worker_view unknown{};
  const auto now = now_ns();
  const auto* known = find(s, worker);
  const auto& w = known != nullptr ? *known : unknown;
  json_array actors, edges, members;
  for (std::size_t i = 0; i < w.graph.actors.size(); ++i) {
    const auto& a = w.graph.actors[i];
    if (!a.ended && a.changed > since) actors.put(json_array::of(i, a.waiting(), a.handled));
  }
  for (std::size_t i = 0; i < w.graph.edges.size(); ++i) {
    const auto& e = w.graph.edges[i];
    if (e.changed > since) edges.put(json_array::of(i, e.messages, e.bytes));
  }
  for (const auto& [id, member] : s.workers) members.put(member_json(s, id, member, now));
  since = s.revision;
  json_object out;
  out.put("worker", worker).put("rev", w.graph.revision).put("seq", s.revision);
  out.put("t", (w.contact.heard_ns != 0 ? w.contact.heard_ns : now) / 1000);
  put_stage(out, s);
  out.put("n", actors).put("e", edges).put("members", members);
  if (s.facts && !s.facts->witnesses.empty()) out.put("witnesses", witnesses_json(*s.facts));
  return out.put("doctor", diagnosis_json(diagnose(s, now), now));
}

/// [place, text] of each text from place `from` on, which is moved to the end.
template <class List>
json_array new_texts(const List& texts, std::size_t& from) {
  json_array out;
  for (; from < texts.size(); ++from) out.put(json_array::of(from, texts[from]));
  return out;
}

/// Begin and end are rounded each for itself, so that neighbours do not overlap.
std::pair<std::int64_t, std::int64_t> microseconds(const node_report::span& s) {
  return {s.begin_ns / 1000, s.end_ns / 1000 - s.begin_ns / 1000};
}

}  // namespace

std::string graph_json(const cluster_view& view, std::uint32_t worker) {
  return view.read([&](const state& s) { return graph_of(s, worker).text(); });
}

std::string tick_json(const cluster_view& view, std::uint32_t worker, std::uint64_t& since) {
  return view.read([&](const state& s) { return tick_of(s, worker, since).text(); });
}

std::string spans_json(const cluster_view& view, std::uint32_t worker, span_place& from,
                       std::size_t most) {
  return view.read([&](const state& s) -> std::string {
    const auto* w = find(s, worker);
    if (w == nullptr) return {};
    const auto end = w->spans.first + w->spans.newest.size();
    auto at = std::max({from.spans, w->spans.first, end - std::min<std::uint64_t>(end, most)});
    if (at >= end) return {};
    json_object out;
    out.put("worker", worker).put("left_out", at - from.spans);
    out.put("names", new_texts(w->names, from.names))
        .put("lanes", new_texts(w->spans.lanes, from.lanes));
    json_array rows;
    for (; at < end; ++at) {
      const auto& x = w->spans.newest[at - w->spans.first];
      const auto [begin, took] = microseconds(x);
      rows.put(json_array::of(x.lane, x.name, x.phase, begin, took, x.clock, x.bytes));
    }
    from.spans = end;
    return out.put("rows", rows).text();
  });
}

namespace {

json_object span_json(std::uint32_t worker, const worker_view& w, const node_report::span& x) {
  return trace_span_json({.name = w.names[x.name],
                          .phase = phase_of(w.names[x.phase]),
                          .begin_ns = x.begin_ns,
                          .end_ns = x.end_ns,
                          .clock = x.clock,
                          .chunk = x.chunk,
                          .bytes = x.bytes},
                         worker, x.lane);
}

}  // namespace

std::string chrome_trace_json(const cluster_view& view, std::uint64_t clocks) {
  return view.read([&](const state& s) {
    json_array events(json_layout::lines);
    for (const auto& [id, w] : s.workers) {
      events.put(trace_name_json(id, std::nullopt, "worker " + std::to_string(id)));
      for (std::size_t l = 0; l < w.spans.lanes.size(); ++l)
        events.put(trace_name_json(id, l, w.spans.lanes[l]));
      for (const auto& x : w.spans.newest)
        if (clocks == 0 || x.clock + clocks > w.pace.clock) events.put(span_json(id, w, x));
    }
    return json_object().put("displayTimeUnit", "ms").put("traceEvents", events).text() + "\n";
  });
}

std::string recording_json(const cluster_view& view) {
  run_history::place from;
  auto history = view.history().json(from);
  if (history.empty()) history = "null";
  return view.read([&](const state& s) {
    const auto self = s.facts ? s.facts->self : 0;
    std::uint64_t since = 0;
    json_object out;
    out.put("graph", graph_of(s, self)).put("tick", tick_of(s, self, since));
    return out.put("history", json_value{history}).text();
  });
}

std::string health_json(const cluster_view& view) {
  return view.read([&](const state& s) {
    const auto self = s.facts ? s.facts->self : 0;
    const auto* w = find(s, self);
    json_object out;
    out.put("ok", true);
    put_stage(out, s);
    out.put("worker", self);
    if (w != nullptr && w->pace.clock_since_ns != 0)
      out.put("clock", shown_clock(s, *w))
          .put("stuck_s", static_cast<double>(now_ns() - w->pace.clock_since_ns) / 1e9);
    return out.text() + "\n";
  });
}

}  // namespace poseidon
