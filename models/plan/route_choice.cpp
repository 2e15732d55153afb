#include "models/plan/route_choice.hpp"

#include "models/plan/cost.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace poseidon {

namespace {

constexpr double least_gain = 0.05;
// share of the whole iteration that leaving the server has to save
constexpr double least_share = 0.05;

std::string format(const char* with, double value) {
  char text[48];
  std::snprintf(text, sizeof text, with, value);
  return text;
}

/// Seconds since the backward pass began.
struct timeline {
  double ready = 0;      // the layer's gradient or factors
  double wire_free = 0;  // when the data of the layers above has been sent
  double end = 0;        // end of the pass
};

double seconds_on_wire(double bytes, const route_rates& r) {
  return bytes * 8 / (r.link_mbit_s * 1e6);
}

/// `product`: seconds that the lanes compute only because of this route.
void account(route_cost& c, double product, const timeline& t, const route_rates& r) {
  const double wire = seconds_on_wire(c.bytes, r), tail = c.tail_ms / 1e3;
  const double over = std::max(0.0, t.wire_free - t.end);
  const double done = std::max(t.ready + product, t.wire_free) + wire + tail;
  const double exposed = std::max(0.0, std::max(0.0, done - t.end - product) - over);
  c.wire_ms = wire * 1e3;
  c.exposed_ms = exposed * 1e3;
  c.compute_ms = (product + std::max(0.0, tail - exposed) / r.cores) * 1e3;
}

/// Seconds of the product that makes the weight gradient, where the backward pass makes it.
double product_s(const route_load& load, const route_rates& r) {
  if (load.factors.rows == 0) return 0;
  return load.measured ? load.measured->product : r.product_s(load.factors) / r.lanes;
}

/// Seconds of the layer's backward pass without that product: the same on both routes.
double without_product_s(const route_load& load, const route_rates& r) {
  if (load.measured) return std::max(0.0, load.measured->backward - load.measured->product);
  const auto& f = load.factors;
  const auto product = 2.0 * static_cast<double>(f.rows) * static_cast<double>(f.outputs) *
                       static_cast<double>(f.inputs);
  return std::max(0.0, load.backward_flop - product) / (r.flop_s * r.lanes);
}

std::string reason(const route_decision& d) {
  const auto& ps = d.server;
  const auto& sfb = d.factors;
  const auto saved = format("%.3g ms", ps.wire_ms - sfb.wire_ms);
  const auto rebuilt = format("%.3g ms", sfb.tail_ms);
  if (d.chosen == route::factor_broadcast)
    return "saves " + saved + " of wire for " + rebuilt + " of making the gradient again";
  if (sfb.bytes >= ps.bytes) return "factors are more bytes";
  if (sfb.total_ms() > ps.total_ms() && ps.exposed_ms < 0.5 * ps.wire_ms)
    return "the wire hides behind the backward pass, making the gradient again (" + rebuilt +
           ") would not";
  if (sfb.total_ms() > ps.total_ms())
    return "making the gradient again takes " + rebuilt + ", the wire would save " + saved;
  return "factors would save less than 5 % of that, or 5 % of the iteration";
}

}  // namespace

std::vector<route_load> route_loads(const net& n, std::size_t micro_batches,
                                    const ::caffe::SolverParameter& solver,
                                    const parameter_formats& formats) {
  std::vector<route_load> out;
  for (std::size_t l = 0; l < n.layers.size(); ++l) {
    const auto& layer = n.layers[l];
    auto& load = out.emplace_back();
    double bytes = 0;
    load.name = layer.name;
    load.backward_flop =
        static_cast<double>(flops_of(n, l).backward) * static_cast<double>(micro_batches);
    for (const auto p : layer.parameters)
      if (n.parameters[p].layer == l && is_learned(n, p)) {
        const auto values = static_cast<std::size_t>(count(n.parameters[p].shape));
        load.values += static_cast<double>(values);
        bytes +=
            static_cast<double>(wire_bytes(format_of(formats, as_id<parameter_id>(p)), values));
      }
    if (bytes > 0) load.value_bytes = bytes / load.values;
    if (layer.type != "InnerProduct") continue;
    load.refusal = why_no_factors(n, l, solver);
    load.factors = factors_of(n, l);
    load.factors.rows *= micro_batches;
  }
  return out;
}

namespace {

/// What a node sends of a layer in an iteration: gradients to the shards, and updates from its own shard.
double server_bytes(const route_load& load, const route_rates& r) {
  const auto others = static_cast<double>(r.workers) - 1;
  const auto keepers = std::min(others, static_cast<double>(r.keepers));
  const auto updates = keepers * 4 + (others - keepers) * load.value_bytes;
  return load.values / static_cast<double>(r.workers) * (others * load.value_bytes + updates);
}

struct account_of_all {
  std::vector<route_decision> decisions;  // by layer
  double total_ms = 0;                    // what the chosen routes cost an iteration
  double iteration_ms = 0;                // forward, backward, and exposed communication
  double bytes = 0;                       // sent by a node in an iteration
};

/// From the net's end, in the order of the backward pass: each layer meets the traffic of the layers above it.
/// `chosen` by layer; empty: each layer takes its own better route.
account_of_all account_all(const std::vector<route_load>& loads, const route_rates& r,
                           const std::vector<bool>& chosen) {
  const auto p = static_cast<double>(r.workers);
  timeline t;
  for (const auto& load : loads) t.end += without_product_s(load, r);
  account_of_all out;
  out.decisions.resize(loads.size());
  for (std::size_t l = loads.size(); l-- > 0;) {
    const auto& load = loads[l];
    const auto& f = load.factors;
    const bool has_factors = f.rows > 0;
    const double product = product_s(load, r);
    t.ready += without_product_s(load, r);
    auto& d = out.decisions[l];
    d.layer = l;
    d.load = load;
    d.server.bytes = server_bytes(load, r);
    d.server.tail_ms = 1e3 * load.values / p * (r.update_s_value + (p - 1) * r.add_s_value);
    account(d.server, product, t, r);
    if (has_factors) {
      auto all = f;
      all.rows *= r.workers;
      if (r.all_shares > 0)
        all.rows =
            static_cast<std::size_t>(std::llround(r.all_shares * static_cast<double>(f.rows)));
      d.factors.bytes = 4 * r.largest_share * static_cast<double>(f.values()) * (p - 1);
      d.factors.tail_ms = 1e3 * (r.product_s(all) +
                                 load.values * r.factor_update_s_value.value_or(r.update_s_value));
      account(d.factors, 0, t, r);
      d.byte_rule = d.factors.bytes <= d.server.bytes;
      const bool better = d.factors.total_ms() < (1 - least_gain) * d.server.total_ms();
      if (load.refusal.empty() && (chosen.empty() ? better : chosen[l]))
        d.chosen = route::factor_broadcast;
    }
    if (d.chosen == route::parameter_server) {
      t.ready += product;
      t.end += product;
    }
    const auto& cost = d.chosen == route::factor_broadcast ? d.factors : d.server;
    if (cost.bytes > 0)
      t.wire_free = std::max(t.ready, t.wire_free) + seconds_on_wire(cost.bytes, r);
    out.total_ms += cost.total_ms();
    out.bytes += cost.bytes;
    out.iteration_ms += cost.exposed_ms;
  }
  out.iteration_ms += 1e3 * 1.5 * t.end;  // a forward pass is half of a backward pass
  return out;
}

}  // namespace

std::vector<route_decision> decide_routes(const std::vector<route_load>& loads,
                                          const route_rates& r) {
  auto best = account_all(loads, r, {});
  std::vector<bool> chosen;
  for (const auto& d : best.decisions) chosen.push_back(d.chosen == route::factor_broadcast);
  // A layer's own better route may delay the layers below it: change one choice at a time while the total falls.
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t l = loads.size(); l-- > 0;) {
      if (loads[l].factors.rows == 0 || !loads[l].refusal.empty()) continue;
      chosen[l] = !chosen[l];
      auto other = account_all(loads, r, chosen);
      if (other.total_ms < (1 - least_gain / 5) * best.total_ms) {
        best = std::move(other);
        changed = true;
      } else {
        chosen[l] = !chosen[l];
      }
    }
  }
  // The server's route gives the bits of one node and the same choice in every run; that is worth a small loss of speed.
  for (std::size_t l = 0; l < loads.size(); ++l) {
    if (!chosen[l]) continue;
    chosen[l] = false;
    auto without = account_all(loads, r, chosen);
    if (without.total_ms - best.total_ms < least_share * best.iteration_ms)
      best = std::move(without);
    else
      chosen[l] = true;
  }
  std::vector<route_decision> out;
  for (auto& d : best.decisions) {
    if (d.load.factors.rows == 0) continue;
    d.why = d.load.refusal.empty() ? reason(d) : d.load.refusal;
    out.push_back(std::move(d));
  }
  return out;
}

route_forecast forecast(const std::vector<route_load>& loads, const route_rates& rates,
                        const std::vector<bool>& chosen) {
  const auto all = account_all(loads, rates, chosen);
  return {all.total_ms, all.iteration_ms, all.bytes};
}

std::string routes_table(const std::vector<route_decision>& decisions, const route_rates& r) {
  std::string out = "routes for " + std::to_string(r.workers) + " nodes, " +
                    format("%.6g Mbit/s", r.link_mbit_s) +
                    "; MB sent by a node in an iteration, and the milliseconds that cost\n";
  char line[400];
  std::snprintf(line, sizeof line, "%-16s %13s %6s %10s %10s %10s %10s  %-16s  %s\n", "layer",
                "M x N", "K x P", "ps MB", "ps ms", "sfb MB", "sfb ms", "choice", "why");
  out += line;
  for (const auto& d : decisions) {
    const auto& f = d.load.factors;
    const auto shape = std::to_string(f.outputs) + " x " + std::to_string(f.inputs);
    const auto rows = std::to_string(f.rows) + "x" + std::to_string(r.workers);
    std::snprintf(line, sizeof line, "%-16.60s %13s %6s %10.3f %10.3f %10.3f %10.3f  %-16s  ",
                  d.load.name.c_str(), shape.c_str(), rows.c_str(), d.server.bytes / 1e6,
                  d.server.total_ms(), d.factors.bytes / 1e6, d.factors.total_ms(),
                  std::string(to_string(d.chosen)).c_str());
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
    row.put("byte_rule", to_string(by_bytes)).put("choice", to_string(d.chosen));
    routes.put(row.put("why", d.why));
  }
  json_object out;
  out.put("schema", 1).put("nodes", r.workers).put("link_mbit_s", r.link_mbit_s);
  return out.put("routes", routes);
}

}  // namespace poseidon
