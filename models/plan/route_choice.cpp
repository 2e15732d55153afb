#include "models/plan/route_choice.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace poseidon {

namespace {

constexpr double least_gain = 0.05;
// share of the whole iteration that leaving the server has to save
constexpr double least_share = 0.05;
// From a frame on one node to the answer of another one, where neither waits for bytes. Assumed: nothing measures it.
constexpr double exchange_s = 3e-4;

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
  const double done = std::max(t.ready + product, t.wire_free) + wire + tail + c.wait_ms / 1e3;
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

std::string reason_of_lowrank(const route_decision& d) {
  return "saves " + format("%.3g ms", d.server.wire_ms - d.lowrank.wire_ms) + " of wire for " +
         format("%.3g ms", d.lowrank.tail_ms + d.lowrank.wait_ms) +
         " of making P, Q and their product";
}

std::string reason_of_factors(const route_decision& d) {
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

std::string reason(const route_decision& d) {
  const auto& l = d.load;
  if (rank_of(d.chosen) > 0) return reason_of_lowrank(d);
  const bool has_factors = l.factors.rows > 0 && l.refusal.empty();
  if (d.chosen == route::factor_broadcast) return reason_of_factors(d);
  const std::string of_lowrank =
      l.lowrank.rank > 0
          ? std::string("low rank would save less than 5 % of that, or 5 % of the iteration")
          : l.lowrank_refusal;
  if (!has_factors) return of_lowrank.empty() ? l.refusal : of_lowrank;
  return reason_of_factors(d) + (of_lowrank.empty() ? "" : "; " + of_lowrank);
}

/// What a node sends of a layer in an iteration: gradients to the shards, and updates from its own shard.
double server_bytes(const route_load& load, const route_rates& r) {
  const auto others = static_cast<double>(r.workers) - 1;
  const auto keepers = std::min(others, static_cast<double>(r.keepers));
  const auto updates = keepers * 4 + (others - keepers) * load.value_bytes;
  return load.values / static_cast<double>(r.workers) * (others * load.value_bytes + updates);
}

/// Sums and updates of the node's own part; and where values are rounded, its gradient, all others' of its own part, the updates of that, and what
/// comes back.
double server_tail_s(const route_load& load, const route_rates& r) {
  const auto p = static_cast<double>(r.workers);
  const double own = load.values / p * (r.update_s_value + (p - 1) * r.add_s_value);
  return load.value_bytes < 4 ? own + 3 * load.values * r.round_s_value : own;
}

/// A node sends its part of P and of Q where it owns neither sum, and both sums to all others where it does: the mean over the nodes.
void account_lowrank(route_cost& c, const route_load& load, double product, const timeline& t,
                     const route_rates& r) {
  const auto p = static_cast<double>(r.workers);
  const auto& s = load.lowrank;
  const double bytes_of_both =
      (load.value_bytes < 4 ? 2 : 4) * static_cast<double>(s.p_values() + s.q_values());
  c.bytes = (bytes_of_both + 4 * load.values_beside) * 2 * (p - 1) / p;
  // P, Q, what the error memory loses, and the gradient: each a product over the whole matrix.
  c.tail_ms = 1e3 * (4 * r.product_s({s.rank, s.rows, s.columns}) + load.values * r.update_s_value);
  c.wait_ms = 1e3 * 2 * exchange_s;
  account(c, product, t, r);
}

/// The routes that a layer can take, in the order in which they are preferred: the server's keeps the bits of one node, factors
/// keep the gradient, low rank neither.
layer_routes possible(const route_load& load) {
  layer_routes out{route::parameter_server};
  if (load.factors.rows > 0 && load.refusal.empty()) out.push_back(route::factor_broadcast);
  if (load.lowrank.rank > 0)
    out.push_back(lowrank_of(static_cast<std::uint32_t>(load.lowrank.rank)));
  return out;
}

const route_cost& cost_of(const route_decision& d, route by) {
  if (rank_of(by) > 0) return d.lowrank;
  return by == route::factor_broadcast ? d.factors : d.server;
}

const route_cost& cost_of(const route_decision& d) {
  return cost_of(d, d.chosen);
}

/// Of a layer by itself.
route better_of(const route_decision& d) {
  auto best = route::parameter_server;
  for (const auto other : possible(d.load))
    if (cost_of(d, other).total_ms() < (1 - least_gain) * cost_of(d, best).total_ms()) best = other;
  return best;
}

struct account_of_all {
  std::vector<route_decision> decisions;  // by layer
  double total_ms = 0;                    // what the chosen routes cost an iteration
  double iteration_ms = 0;                // forward, backward, and exposed communication
  double bytes = 0;                       // sent by a node in an iteration
  // The same by who is at work, whatever the others do: lanes and host, the wire, and nobody.
  double busy_ms = 0, wire_ms = 0, wait_ms = 0;
};

/// What an iteration takes in which lanes and wire work side by side, each of them waiting for the other here and there: the fourth root
/// of the sum of fourth powers, so 19 % more than either of them where they take as long, and 1 % where one takes 2.2 times as long.
/// Source   measured: tools/bench/ladder, docs/measurements/ladder.md.
double side_by_side(const account_of_all& all) {
  return std::pow(std::pow(all.busy_ms, 4) + std::pow(all.wire_ms, 4), 0.25) + all.wait_ms;
}

/// From the net's end, in the order of the backward pass: each layer meets the traffic of the layers above it.
/// `chosen` by layer; empty: each layer takes its own best route.
account_of_all account_all(const std::vector<route_load>& loads, const route_rates& r,
                           const layer_routes& chosen) {
  const auto p = static_cast<double>(r.workers);
  timeline t;
  account_of_all out;
  double all_products_s = 0;
  for (const auto& load : loads) {
    t.end += without_product_s(load, r);
    all_products_s += product_s(load, r);
  }
  // A forward pass is half of a backward pass.
  const double pass_s = r.pass_s > 0 ? r.pass_s : 1.5 * (t.end + all_products_s);
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
    d.server.tail_ms = 1e3 * server_tail_s(load, r);
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
    }
    if (load.lowrank.rank > 0) account_lowrank(d.lowrank, load, product, t, r);
    d.chosen = chosen.empty() ? better_of(d) : chosen[l];
    if (d.chosen != route::factor_broadcast) {
      t.ready += product;
      t.end += product;
      all_products_s -= product;
    }
    const auto& cost = cost_of(d);
    if (cost.bytes > 0)
      t.wire_free = std::max(t.ready, t.wire_free) + seconds_on_wire(cost.bytes, r);
    out.total_ms += cost.total_ms();
    out.bytes += cost.bytes;
    out.iteration_ms += cost.exposed_ms;
    out.busy_ms += cost.tail_ms / r.cores;
    out.wire_ms += cost.wire_ms;
    out.wait_ms = std::max(out.wait_ms, cost.wait_ms);
  }
  // What is left are the products that factors spare the backward pass. One that was timed alone can have taken longer than the whole pass.
  out.busy_ms += 1e3 * std::max(pass_s - all_products_s, 0.1 * pass_s);
  out.iteration_ms += 1e3 * 1.5 * t.end;  // a forward pass is half of a backward pass
  return out;
}

}  // namespace

void take_pass_time(route_rates& r, const std::vector<route_load>& loads, double pass_s) {
  double products_s = 0, rest_s = 0;
  for (const auto& load : loads) {
    products_s += product_s(load, r);
    rest_s += without_product_s(load, r);
  }
  const double backward_s = pass_s / 1.5;  // a forward pass is half of a backward pass
  r.pass_s = pass_s;
  // Products that were timed alone can take longer than they do in the pass.
  if (rest_s > 0) r.flop_s *= rest_s / std::max(backward_s - products_s, 0.1 * backward_s);
}

std::vector<route_decision> decide_routes(const std::vector<route_load>& loads,
                                          const route_rates& r) {
  auto best = account_all(loads, r, {});
  layer_routes chosen;
  for (const auto& d : best.decisions) chosen.push_back(d.chosen);
  const auto with = [&](std::size_t layer, route other) {
    auto changed = chosen;
    changed[layer] = other;
    return account_all(loads, r, changed);
  };
  // A layer's own better route may delay the layers below it: change one choice at a time while the total falls.
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t l = loads.size(); l-- > 0;)
      for (const auto other : possible(loads[l])) {
        if (other == chosen[l]) continue;
        auto all = with(l, other);
        if (all.total_ms >= (1 - least_gain / 5) * best.total_ms) continue;
        best = std::move(all);
        chosen[l] = other;
        changed = true;
      }
  }
  // The server's route gives the bits of one node and the same choice in every run; that is worth a small loss of speed, of all layers together.
  const double limit_ms = best.total_ms + least_share * best.iteration_ms;
  for (std::size_t l = 0; l < loads.size(); ++l)
    for (const auto milder : possible(loads[l])) {
      if (milder == chosen[l]) break;
      auto all = with(l, milder);
      if (all.total_ms >= limit_ms) continue;
      best = std::move(all);
      chosen[l] = milder;
      break;
    }
  std::vector<route_decision> out;
  for (auto& d : best.decisions) {
    const auto& load = d.load;
    if (load.factors.rows == 0 && load.lowrank.rank == 0 && load.lowrank_refusal.empty()) continue;
    d.why = reason(d);
    out.push_back(std::move(d));
  }
  return out;
}

route_forecast forecast(const std::vector<route_load>& loads, const route_rates& rates,
                        const std::vector<bool>& chosen) {
  layer_routes routes;
  for (const bool factors : chosen)
    routes.push_back(factors ? route::factor_broadcast : route::parameter_server);
  return forecast(loads, rates, routes);
}

route_forecast forecast(const std::vector<route_load>& loads, const route_rates& rates,
                        const layer_routes& chosen) {
  const auto all = account_all(loads, rates, chosen);
  return {all.iteration_ms, all.total_ms, side_by_side(all), all.bytes};
}

}  // namespace poseidon
