#include "models/plan/routes.hpp"

#include "models/plan/lowrank_routes.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <array>

namespace poseidon {

namespace {

/// u and v that a program gives of one parameter in a clock.
factor_shape declared_factors(const net& n, const net_layer& l) {
  const auto& dims = n.parameters[l.parameters.front()].shape;
  if (l.factor_rows == 0) return {};
  return {l.factor_rows, static_cast<std::size_t>(dims[0]), static_cast<std::size_t>(dims[1])};
}

/// The conditions that concern all layers of a run.
std::string solver_refusal(const ::caffe::SolverParameter& solver) {
  if (solver.clip_gradients() >= 0)
    return "clip_gradients needs the norm of all gradients, which only shards add up";
  if (solver.poseidon().outer_steps() > 0)
    return "outer steps send what parameters have moved, which is no product of factors";
  if (solver.debug_info()) return "debug_info prints gradients, which factors do not show";
  return {};
}

/// As in a file of --routes.
std::string word_of(route r) {
  if (r == route::parameter_server) return "ps";
  return r == route::factor_broadcast ? "sfb" : std::string(to_string(r));
}

}  // namespace

std::string_view to_string(route r) {
  constexpr std::array<std::string_view, route_kinds> names{
      "parameter_server", "factor_broadcast",   "lowrank_4",
      "lowrank_8",        "lowrank_4_bfloat16", "lowrank_8_bfloat16"};
  return names[static_cast<std::size_t>(r)];
}

bool is_shared(const net& n, std::size_t parameter) {
  std::size_t found = 0;
  for (const auto& layer : n.layers)
    found += static_cast<std::size_t>(
        std::count(layer.parameters.begin(), layer.parameters.end(), parameter));
  return found > 1;
}

route route_of(const parameter_routes& routes, parameter_id parameter) {
  return routes.contains(parameter) ? routes[parameter] : route::parameter_server;
}

bool on_factors(const parameter_routes& routes, parameter_id parameter) {
  return route_of(routes, parameter) == route::factor_broadcast;
}

bool on_every_node(const parameter_routes& routes, parameter_id parameter) {
  return route_of(routes, parameter) != route::parameter_server;
}

layer_routes routes_of_layers(const net& n, const parameter_routes& routes) {
  layer_routes out(n.layers.size(), route::parameter_server);
  for (std::size_t l = 0; l < n.layers.size(); ++l)
    if (!n.layers[l].parameters.empty())
      out[l] = route_of(routes, as_id<parameter_id>(n.layers[l].parameters.front()));
  return out;
}

std::vector<bool> factor_layers(const net& n, const parameter_routes& routes) {
  std::vector<bool> out;
  for (const auto r : routes_of_layers(n, routes)) out.push_back(r == route::factor_broadcast);
  return out;
}

factor_shape factors_of(const net& n, std::size_t layer) {
  const auto& l = n.layers[layer];
  if (l.type == "Declared") return declared_factors(n, l);
  const auto& spec = l.spec.inner_product_param();
  const auto outputs = static_cast<std::size_t>(spec.num_output());
  const auto values = [&](std::size_t blob) {
    return static_cast<std::size_t>(count(n.blobs[blob].shape));
  };
  factor_shape s;
  s.outputs = outputs;
  s.rows = outputs == 0 ? 0 : values(l.tops.front()) / outputs;
  s.inputs = s.rows == 0 ? 0 : values(l.bottoms.front()) / s.rows;
  s.transposed = spec.transpose();
  return s;
}

std::string why_no_factors(const net& n, std::size_t layer,
                           const ::caffe::SolverParameter& solver) {
  const auto& l = n.layers[layer];
  if (l.type == "Declared")
    return l.factor_rows > 0 ? "" : "its program gives the gradient as a whole";
  if (l.type != "InnerProduct")
    return "it is no InnerProduct: only the gradient of one is a product of factors";
  if (l.bottoms.size() != 1) return "it has several bottoms";
  for (const auto p : l.parameters)
    if (is_shared(n, p)) return "it shares parameters with another layer";
  if (!l.learn.at(0) || !is_learned(n, l.parameters[0]))
    return "lr_mult of its weights is 0: nothing is sent";
  if (!l.needs_backward) return "no loss reaches it: its gradient is zero";
  if (factors_of(n, layer).rows == 0) return "its batch is empty";
  return solver_refusal(solver);
}

std::string why_no_factors_at_all(const net& n, const ::caffe::SolverParameter& solver) {
  const auto why = solver_refusal(solver);
  if (why.empty()) return {};
  const ::caffe::SolverParameter plain;
  for (std::size_t l = 0; l < n.layers.size(); ++l)
    if (why_no_factors(n, l, plain).empty())
      return "routes: every layer stays on the parameter server: " + why;
  return {};
}

parameter_routes routes_of(const net& n, const layer_routes& chosen) {
  parameter_routes routes(n.parameters.size(), route::parameter_server);
  for (std::size_t l = 0; l < n.layers.size(); ++l)
    for (const auto p : n.layers[l].parameters)
      if (chosen[l] != route::parameter_server && is_learned(n, p))
        routes[as_id<parameter_id>(p)] = chosen[l];
  return routes;
}

parameter_routes routes_of(const net& n, const std::vector<bool>& chosen) {
  layer_routes routes;
  for (const bool factors : chosen)
    routes.push_back(factors ? route::factor_broadcast : route::parameter_server);
  return routes_of(n, routes);
}

namespace {

/// All layers that can take one route.
layer_routes wherever_possible(const net& n, const route_option& option,
                               const ::caffe::SolverParameter& solver) {
  layer_routes chosen(n.layers.size(), route::parameter_server);
  const auto rank = option.rank > 0 ? option.rank : default_rank;
  for (std::size_t l = 0; l < n.layers.size(); ++l) {
    if (option.what == route_option::kind::factors && why_no_factors(n, l, solver).empty())
      chosen[l] = route::factor_broadcast;
    if (option.what == route_option::kind::lowrank && why_no_lowrank(n, l, rank, solver).empty())
      chosen[l] = lowrank_of(rank);
  }
  return chosen;
}

/// "cannot broadcast factors: ..."; empty: the layer can take the route.
std::string why_not(const net& n, std::size_t layer, route where,
                    const ::caffe::SolverParameter& solver) {
  if (where == route::parameter_server) return {};
  const auto rank = rank_of(where);
  const auto why =
      rank > 0 ? why_no_lowrank(n, layer, rank, solver) : why_no_factors(n, layer, solver);
  if (why.empty()) return {};
  return (rank > 0 ? "cannot go by low rank: " : "cannot broadcast factors: ") + why;
}

}  // namespace

layer_routes layers_of_option(const net& n, const route_option& option,
                              const ::caffe::SolverParameter& solver, std::uint64_t clock) {
  auto chosen = wherever_possible(n, option, solver);
  std::vector<std::string> names;
  for (const auto& layer : n.layers)
    if (!layer.parameters.empty()) names.push_back(layer.name);
  for (const auto& e : option.entries) {
    const spec_position at{option.file, e.line};
    const auto found = std::find_if(n.layers.begin(), n.layers.end(),
                                    [&](const net_layer& l) { return l.name == e.layer; });
    if (found == n.layers.end())
      throw spec_error(at, "the net \"" + n.name + "\" has no layer \"" + e.layer + "\"." +
                               did_you_mean(e.layer, names));
    const auto l = static_cast<std::size_t>(found - n.layers.begin());
    if (const auto why = why_not(n, l, e.where, solver); !why.empty())
      throw spec_error(at,
                       "layer \"" + e.layer + "\" (" + found->type + ") " + why + ". Give it ps.");
    if (e.clock <= clock) chosen[l] = e.where;
  }
  return chosen;
}

std::map<std::uint64_t, layer_routes> changes_of_option(const net& n, const route_option& option,
                                                        const ::caffe::SolverParameter& solver,
                                                        std::uint64_t clock) {
  std::map<std::uint64_t, layer_routes> changes;
  auto before = layers_of_option(n, option, solver, clock);
  for (const auto& e : option.entries) {
    if (e.clock <= clock) continue;
    auto now = layers_of_option(n, option, solver, e.clock);
    if (now != before) changes[e.clock] = now;
    before = std::move(now);
  }
  return changes;
}

std::string routes_file(const net& n, const ::caffe::SolverParameter& solver,
                        const std::map<std::uint64_t, parameter_routes>& by_clock) {
  std::string out = "# poseidon-node --routes with this file trains with the same routes again.\n";
  layer_routes before;
  for (const auto& [clock, routes] : by_clock) {
    const auto now = routes_of_layers(n, routes);
    const auto at = before.empty() ? "" : "@" + std::to_string(clock) + " ";
    const auto is_said = [&](std::size_t l) {
      if (!before.empty()) return now[l] != before[l];
      return now[l] != route::parameter_server || why_no_factors(n, l, solver).empty();
    };
    for (std::size_t l = 0; l < n.layers.size(); ++l)
      if (is_said(l)) out += at + n.layers[l].name + " " + word_of(now[l]) + "\n";
    before = now;
  }
  return out;
}

}  // namespace poseidon
