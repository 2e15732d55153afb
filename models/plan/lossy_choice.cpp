#include "models/plan/lossy_choice.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace poseidon {

namespace {

constexpr double worth_it = 1.02;     // a rougher rung has to save more than that
constexpr double for_nothing = 1.01;  // what a milder format of a layer may cost
constexpr std::array rungs_of_ladder{lossiness{}, lossiness{wire_format::bfloat16},
                                     lossiness{wire_format::int8}, lossiness{wire_format::int4},
                                     lossiness{wire_format::int4, true}};

std::string rung_name(const lossiness& r) {
  if (r.lowrank) return "lowrank";
  return r.is_none() ? "none" : std::string(to_string(r.format));
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
    formats[p] = rungs_of_ladder.at(rungs[n.parameters[value(p)].layer]).format;
    exact = exact && formats[p] == wire_format::float32;
  }
  return exact ? parameter_formats{} : formats;
}

/// One rung: by layer, what travels and on which route. Loads of two rungs differ in the bytes of a value, and in whether low rank is allowed.
struct rung_plan {
  std::vector<route_load> loads;
  layer_routes routes;
};

/// All rungs up to the harshest one.
std::vector<rung_plan> plans_of_rungs(const net& n, const loads_by_rung& loads_of,
                                      const lossiness& harshest, const choose_by_loads& choose) {
  std::vector<rung_plan> out;
  do {
    const std::vector<std::size_t> all(n.layers.size(), out.size());
    auto loads = loads_of(formats_by_layer(n, all), rungs_of_ladder.at(out.size()).lowrank);
    auto routes = choose(loads);
    out.push_back({std::move(loads), std::move(routes)});
  } while (rungs_of_ladder.at(out.size() - 1) != harshest);
  return out;
}

struct layers_on_rungs {
  std::vector<std::size_t> rung;  // by layer
  rung_plan plan;
};

/// At first each layer is on the rung that was taken for all of them, then on a milder one wherever the iteration stays as short as
/// `limit_ms`. From the net's end, whose gradients have most of the backward pass to hide behind.
layers_on_rungs milder_layers(const std::vector<rung_plan>& rungs, std::size_t taken,
                              const route_rates& rates, double limit_ms) {
  layers_on_rungs out{std::vector<std::size_t>(rungs[taken].loads.size(), taken), rungs[taken]};
  auto& [rung, now] = out;
  for (std::size_t l = rung.size(); l-- > 0;)
    for (std::size_t k = 0; k < rung[l]; ++k) {
      const auto& milder = rungs[k];
      const bool is_alike = milder.loads[l].value_bytes == now.loads[l].value_bytes &&
                            milder.routes[l] == now.routes[l];
      if (is_alike) continue;
      const auto load = std::exchange(now.loads[l], milder.loads[l]);
      const auto route = std::exchange(now.routes[l], milder.routes[l]);
      if (forecast(now.loads, rates, now.routes).iteration_ms <= limit_ms) {
        rung[l] = k;
      } else {
        now.loads[l] = load;
        now.routes[l] = route;
      }
    }
  return out;
}

}  // namespace

std::span<const lossiness> all_rungs() {
  return rungs_of_ladder;
}

lossiness parse_lossy(const std::string& option) {
  for (const auto& r : rungs_of_ladder)
    if (option == rung_name(r)) return r;
  throw spec_error(
      "--lossy " + option +
      ": it is none of none, bfloat16, int8, int4 and lowrank, the roughest way in which "
      "gradients may travel.");
}

lossy_choice choose_lossy(const net& n, const loads_by_rung& loads_of, const route_rates& rates,
                          const lossiness& harshest, const choose_by_loads& choose) {
  const auto rungs = plans_of_rungs(n, loads_of, harshest, choose);
  lossy_choice out;
  double best_ms = 0;
  for (std::size_t k = 0; k < rungs.size(); ++k) {
    const auto seen = forecast(rungs[k].loads, rates, rungs[k].routes);
    out.rungs.push_back({all_rungs()[k], seen.bytes, seen.iteration_ms});
    best_ms = k == 0 ? seen.iteration_ms : std::min(best_ms, seen.iteration_ms);
  }
  while (out.rungs[out.rung].iteration_ms > worth_it * best_ms) ++out.rung;
  const double limit_ms =
      std::min(worth_it * best_ms, for_nothing * out.rungs[out.rung].iteration_ms);
  auto layers = milder_layers(rungs, out.rung, rates, limit_ms);
  const auto seen = forecast(layers.plan.loads, rates, layers.plan.routes);
  out.formats = formats_by_layer(n, layers.rung);
  out.by_lowrank =
      harshest.lowrank && std::any_of(layers.plan.routes.begin(), layers.plan.routes.end(),
                                      [](route r) { return rank_of(r) > 0; });
  out.loads = std::move(layers.plan.loads);
  out.bytes = seen.bytes;
  out.iteration_ms = seen.iteration_ms;
  return out;
}

std::string lossy_note(const lossy_choice& c, const lossiness& harshest) {
  const auto& exact = c.rungs.front();
  const auto until = "lossy: up to " + rung_name(harshest) + " was allowed. ";
  if (c.formats.empty() && !c.by_lowrank)
    return until + "Nothing is rounded: an iteration takes " +
           text_of("%.3g s", exact.iteration_ms / 1e3) +
           " as predicted, and fewer bytes would not make it 2 % shorter";
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
    add(rung_name(c.rungs[k].is), c.rungs[k].bytes, c.rungs[k].iteration_ms,
        k == c.rung ? "the mildest one within 2 % of the fastest" : "");
  add("chosen", c.bytes, c.iteration_ms, "layers that hide behind the pass are rounded less");
  return out;
}

json_object ladder_json(const lossy_choice& c) {
  const auto cost = [](double bytes, double ms) {
    return json_object().put("bytes", bytes).put("iteration_ms", ms);
  };
  json_array rungs(json_layout::lines);
  for (const auto& r : c.rungs)
    rungs.put(json_object().put("lossy", rung_name(r.is)).add(cost(r.bytes, r.iteration_ms)));
  json_object out;
  out.put("rungs", rungs).put("taken", rung_name(c.rungs[c.rung].is));
  return out.put("chosen", cost(c.bytes, c.iteration_ms));
}

}  // namespace poseidon
