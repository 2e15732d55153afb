// What routes cost, for people and for programs: a part of route_choice.hpp.
#include "models/json.hpp"
#include "models/plan/route_choice.hpp"

#include <algorithm>
#include <cstdio>

namespace poseidon {

namespace {

/// Whether any layer could go by low rank: else nobody has asked for it.
bool has_lowrank(const std::vector<route_decision>& decisions) {
  return std::any_of(decisions.begin(), decisions.end(),
                     [](const auto& d) { return d.load.lowrank.rank > 0; });
}

/// One number of a table, right in its column.
std::string number(double value, const char* with) {
  char text[64];
  std::snprintf(text, sizeof text, with, value);
  return text;
}

/// "500 x 800": of a layer without factors its matrix.
std::string shape_of(const route_load& load) {
  const auto& f = load.factors;
  if (f.rows > 0) return std::to_string(f.outputs) + " x " + std::to_string(f.inputs);
  if (load.lowrank.rank == 0) return "-";
  return std::to_string(load.lowrank.rows) + " x " + std::to_string(load.lowrank.columns);
}

/// Bytes in MB and milliseconds; of a route that the layer cannot take, dashes.
std::string cost_columns(const route_cost& c, bool possible) {
  char text[64];
  if (possible)
    std::snprintf(text, sizeof text, " %10.3f %10.3f", c.bytes / 1e6, c.total_ms());
  else
    std::snprintf(text, sizeof text, " %10s %10s", "-", "-");
  return text;
}

}  // namespace

std::string routes_table(const std::vector<route_decision>& decisions, const route_rates& r) {
  const bool lowrank = has_lowrank(decisions);
  std::string out = "routes for " + std::to_string(r.workers) + " nodes, " +
                    number(r.link_mbit_s, "%.6g Mbit/s") +
                    "; MB sent by a node in an iteration, and the milliseconds that cost\n";
  char line[400];
  std::snprintf(line, sizeof line, "%-16s %13s %6s %10s %10s %10s %10s", "layer", "M x N", "K x P",
                "ps MB", "ps ms", "sfb MB", "sfb ms");
  out += line;
  if (lowrank) {
    std::snprintf(line, sizeof line, " %10s %10s", "lowrank MB", "lowrank ms");
    out += line;
  }
  std::snprintf(line, sizeof line, "  %-16s  %s\n", "choice", "why");
  out += line;
  for (const auto& d : decisions) {
    const bool factors = d.load.factors.rows > 0;
    const auto rows =
        factors ? std::to_string(d.load.factors.rows) + "x" + std::to_string(r.workers) : "-";
    std::snprintf(line, sizeof line, "%-16.60s %13s %6s", d.load.name.c_str(),
                  shape_of(d.load).c_str(), rows.c_str());
    out += line + cost_columns(d.server, true) + cost_columns(d.factors, factors);
    if (lowrank) out += cost_columns(d.lowrank, d.load.lowrank.rank > 0);
    std::snprintf(line, sizeof line, "  %-16s  ", std::string(to_string(d.chosen)).c_str());
    out += line + d.why + "\n";
  }
  if (decisions.empty())
    out += "(the net has no InnerProduct: everything goes by parameter_server)\n";
  return out;
}

namespace {

json_object cost_json(const route_cost& c) {
  json_object out;
  out.put("bytes", c.bytes).put("wire_ms", c.wire_ms).put("tail_ms", c.tail_ms);
  out.put("exposed_ms", c.exposed_ms).put("compute_ms", c.compute_ms);
  return out.put("total_ms", c.total_ms());
}

}  // namespace

json_object routes_json(const std::vector<route_decision>& decisions, const route_rates& r) {
  json_array routes(json_layout::lines);
  for (const auto& d : decisions) {
    const auto& f = d.load.factors;
    const auto by_bytes = d.byte_rule ? route::factor_broadcast : route::parameter_server;
    json_object row;
    row.put("layer", d.load.name);
    row.put("outputs", f.outputs).put("inputs", f.inputs).put("rows", f.rows);
    row.put("parameter_server", cost_json(d.server)).put("factor_broadcast", cost_json(d.factors));
    if (d.load.lowrank.rank > 0)
      row.put("rank", d.load.lowrank.rank).put("lowrank", cost_json(d.lowrank));
    row.put("byte_rule", to_string(by_bytes)).put("choice", to_string(d.chosen));
    routes.put(row.put("why", d.why));
  }
  json_object out;
  out.put("schema", 1).put("nodes", r.workers).put("link_mbit_s", r.link_mbit_s);
  return out.put("routes", routes);
}

}  // namespace poseidon
