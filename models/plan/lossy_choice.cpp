#include "models/plan/lossy_choice.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace poseidon {

namespace {

constexpr double worth_it = 1.05;     // a rougher rung has to save more than that
constexpr double for_nothing = 1.01;  // what a milder format of a layer may cost
constexpr std::array formats_of_ladder{wire_format::float32, wire_format::bfloat16,
                                       wire_format::int8, wire_format::int4};

std::string rung_name(wire_format f) {
  return f == wire_format::float32 ? "none" : std::string(to_string(f));
}

std::string text_of(const char* with, double value) {
  char text[48];
  std::snprintf(text, sizeof text, with, value);
  return text;
}

/// `rungs`: by layer. Small parameters stay float32 on every rung.
parameter_formats formats_by_layer(const net& n, const std::vector<std::size_t>& rungs) {
  wire_option all;
  all.all = wire_format::int4;
  auto formats = formats_of(n, all);  // those that travel and are large are in int4
  bool exact = true;
  for (const auto p : formats.ids()) {
    if (formats[p] == wire_format::float32) continue;
    formats[p] = formats_of_ladder.at(rungs[n.parameters[value(p)].layer]);
    exact = exact && formats[p] == wire_format::float32;
  }
  return exact ? parameter_formats{} : formats;
}

/// The loads of all rungs up to the harshest one. They differ in the bytes of a value alone.
std::vector<std::vector<route_load>> loads_of_rungs(const net& n, const loads_by_format& loads_in,
                                                    wire_format harshest) {
  std::vector<std::vector<route_load>> out;
  do {
    const std::vector<std::size_t> all(n.layers.size(), out.size());
    out.push_back(loads_in(formats_by_layer(n, all)));
  } while (formats_of_ladder.at(out.size() - 1) != harshest);
  return out;
}

/// The rung of each layer: at first the one that was taken for all of them, then a milder one wherever the iteration stays as
/// short as `limit_ms`. From the net's end, whose gradients have most of the backward pass to hide behind.
std::vector<std::size_t> milder_layers(const std::vector<std::vector<route_load>>& rungs,
                                       std::size_t taken, const route_rates& rates,
                                       const layer_routes& routes, double limit_ms) {
  auto loads = rungs[taken];
  std::vector<std::size_t> out(loads.size(), taken);
  for (std::size_t l = loads.size(); l-- > 0;)
    for (std::size_t k = 0; k < out[l]; ++k) {
      if (rungs[k][l].value_bytes == loads[l].value_bytes) continue;  // it has nothing to round
      const auto harsher = std::exchange(loads[l], rungs[k][l]);
      if (forecast(loads, rates, routes).iteration_ms <= limit_ms)
        out[l] = k;
      else
        loads[l] = harsher;
    }
  return out;
}

}  // namespace

std::span<const wire_format> ladder_formats() {
  return formats_of_ladder;
}

wire_format parse_lossy(const std::string& option) {
  for (const auto f : formats_of_ladder)
    if (option == rung_name(f)) return f;
  throw spec_error(
      "--lossy " + option +
      ": it is none of none, bfloat16, int8 and int4, the roughest format that gradients may get.");
}

lossy_choice choose_lossy(const net& n, const loads_by_format& loads_in, const route_rates& rates,
                          wire_format harshest, const choose_by_loads& choose) {
  const auto rungs = loads_of_rungs(n, loads_in, harshest);
  lossy_choice out;
  std::vector<layer_routes> routes;
  double best_ms = 0;
  for (std::size_t k = 0; k < rungs.size(); ++k) {
    const auto& chosen = routes.emplace_back(choose(rungs[k]));
    const auto seen = forecast(rungs[k], rates, chosen);
    out.rungs.push_back({ladder_formats()[k], seen.bytes, seen.iteration_ms});
    best_ms = k == 0 ? seen.iteration_ms : std::min(best_ms, seen.iteration_ms);
  }
  while (out.rungs[out.rung].iteration_ms > worth_it * best_ms) ++out.rung;
  const double limit_ms =
      std::min(worth_it * best_ms, for_nothing * out.rungs[out.rung].iteration_ms);
  const auto by_layer = milder_layers(rungs, out.rung, rates, routes[out.rung], limit_ms);
  out.formats = formats_by_layer(n, by_layer);
  auto loads = rungs.front();
  for (std::size_t l = 0; l < loads.size(); ++l) loads[l] = rungs[by_layer[l]][l];
  const auto seen = forecast(loads, rates, routes[out.rung]);
  out.bytes = seen.bytes;
  out.iteration_ms = seen.iteration_ms;
  return out;
}

std::string lossy_note(const lossy_choice& c, wire_format harshest) {
  const auto& exact = c.rungs.front();
  const auto until = "lossy: up to " + rung_name(harshest) + " was allowed. ";
  if (c.formats.empty())
    return until + "Nothing is rounded: an iteration takes " +
           text_of("%.3g s", exact.iteration_ms / 1e3) +
           " as predicted, and fewer bytes would not make it 5 % shorter";
  return until + "An iteration takes " + text_of("%.3g s", c.iteration_ms / 1e3) + " instead of " +
         text_of("%.3g s", exact.iteration_ms / 1e3) +
         " as predicted, and the result is no longer that of one machine";
}

std::string ladder_table(const lossy_choice& c, const route_rates& r) {
  std::string out = "the ladder for " + std::to_string(r.workers) + " nodes, " +
                    text_of("%.6g Mbit/s", r.link_mbit_s) +
                    "; MB sent by a node in an iteration, and the milliseconds of one\n";
  char line[160];
  const auto add = [&](const std::string& name, double bytes, double ms, const char* why) {
    std::snprintf(line, sizeof line, "%-12s %10.3f %12.3f %8.2f  %s\n", name.c_str(), bytes / 1e6,
                  ms, c.rungs.front().iteration_ms / ms, why);
    out += line;
  };
  std::snprintf(line, sizeof line, "%-12s %10s %12s %8s\n", "lossy", "MB", "ms", "times");
  out += line;
  for (std::size_t k = 0; k < c.rungs.size(); ++k)
    add(rung_name(c.rungs[k].format), c.rungs[k].bytes, c.rungs[k].iteration_ms,
        k == c.rung ? "the mildest one within 5 % of the fastest" : "");
  add("chosen", c.bytes, c.iteration_ms, "layers that hide behind the pass are rounded less");
  return out;
}

json_object ladder_json(const lossy_choice& c) {
  const auto cost = [](double bytes, double ms) {
    return json_object().put("bytes", bytes).put("iteration_ms", ms);
  };
  json_array rungs(json_layout::lines);
  for (const auto& r : c.rungs)
    rungs.put(json_object().put("lossy", rung_name(r.format)).add(cost(r.bytes, r.iteration_ms)));
  json_object out;
  out.put("rungs", rungs).put("taken", rung_name(c.rungs[c.rung].format));
  return out.put("chosen", cost(c.bytes, c.iteration_ms));
}

}  // namespace poseidon
