#include "models/plan/routes.hpp"

#include "models/first_bytes.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

namespace poseidon {

namespace {

std::size_t uses(const net& n, std::size_t parameter) {
  std::size_t found = 0;
  for (const auto& layer : n.layers)
    found += static_cast<std::size_t>(
        std::count(layer.parameters.begin(), layer.parameters.end(), parameter));
  return found;
}

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

}  // namespace

std::string_view to_string(route r) {
  return r == route::factor_broadcast ? "factor_broadcast" : "parameter_server";
}

bool on_factors(const parameter_routes& routes, parameter_id parameter) {
  return routes.contains(parameter) && routes[parameter] == route::factor_broadcast;
}

std::vector<bool> factor_layers(const net& n, const parameter_routes& routes) {
  std::vector<bool> out(n.layers.size());
  for (std::size_t l = 0; l < n.layers.size(); ++l)
    out[l] = !n.layers[l].parameters.empty() &&
             on_factors(routes, as_id<parameter_id>(n.layers[l].parameters.front()));
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
    if (uses(n, p) > 1) return "it shares parameters with another layer";
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

namespace {

/// The number in "@20".
std::uint64_t clock_of(const std::string& word, const spec_position& at) {
  std::uint64_t clock = 0;
  const auto* end = word.data() + word.size();
  const auto [stopped, error] = std::from_chars(word.data() + 1, end, clock);
  if (error == std::errc{} && stopped == end) return clock;
  throw spec_error(at, "expected the number of an iteration after @, found \"" + word + "\".");
}

}  // namespace

route_option parse_routes(const std::string& option) {
  route_option parsed;
  if (option == "auto") return parsed;
  parsed.what = option == "ps"    ? route_option::kind::server
                : option == "sfb" ? route_option::kind::factors
                                  : route_option::kind::listed;
  if (parsed.what != route_option::kind::listed) return parsed;
  parsed.file = option;
  std::ifstream in(option);
  if (!in)
    throw spec_error("--routes " + option +
                     ": it is none of auto, ps and sfb, and no file of that name can be read.");
  skip_byte_order_mark(in);
  std::string text;
  for (int line = 1; std::getline(in, text); ++line) {
    std::istringstream words(text.substr(0, text.find('#')));
    std::string where, more;
    route_option::entry e;
    e.line = line;
    if (!(words >> e.layer)) continue;
    const spec_position at{option, line};
    if (e.layer.front() == '@') {
      e.clock = clock_of(e.layer, at);
      words >> e.layer;
    }
    if (!(words >> where) || words >> more || (where != "ps" && where != "sfb"))
      throw spec_error(at,
                       "expected \"layer ps\" or \"layer sfb\", after \"@iteration\" where it is "
                       "to hold from that iteration on; found \"" +
                           text + "\".");
    e.where = where == "sfb" ? route::factor_broadcast : route::parameter_server;
    for (const auto& other : parsed.entries)
      if (other.layer == e.layer && other.clock == e.clock)
        throw spec_error(
            at, "layer \"" + e.layer + "\" has a route " +
                    (e.clock > 0 ? "from iteration " + std::to_string(e.clock) + " on " : "") +
                    "in line " + std::to_string(other.line) + " already.");
    parsed.entries.push_back(e);
  }
  std::stable_sort(parsed.entries.begin(), parsed.entries.end(),
                   [](const auto& a, const auto& b) { return a.clock < b.clock; });
  return parsed;
}

parameter_routes routes_of(const net& n, const std::vector<bool>& chosen) {
  parameter_routes routes(n.parameters.size(), route::parameter_server);
  for (std::size_t l = 0; l < n.layers.size(); ++l)
    if (chosen[l])
      for (const auto p : n.layers[l].parameters)
        if (is_learned(n, p)) routes[as_id<parameter_id>(p)] = route::factor_broadcast;
  return routes;
}

std::vector<bool> layers_of_option(const net& n, const route_option& option,
                                   const ::caffe::SolverParameter& solver, std::uint64_t clock) {
  std::vector<bool> chosen(n.layers.size());
  if (option.what == route_option::kind::factors)
    for (std::size_t l = 0; l < n.layers.size(); ++l)
      chosen[l] = why_no_factors(n, l, solver).empty();
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
    const bool factors = e.where == route::factor_broadcast;
    if (const auto why = factors ? why_no_factors(n, l, solver) : ""; !why.empty())
      throw spec_error(at, "layer \"" + e.layer + "\" (" + found->type +
                               ") cannot broadcast factors: " + why + ". Give it ps.");
    if (e.clock <= clock) chosen[l] = factors;
  }
  return chosen;
}

std::map<std::uint64_t, std::vector<bool>> changes_of_option(const net& n,
                                                             const route_option& option,
                                                             const ::caffe::SolverParameter& solver,
                                                             std::uint64_t clock) {
  std::map<std::uint64_t, std::vector<bool>> changes;
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
  std::vector<bool> before;
  for (const auto& [clock, routes] : by_clock) {
    const auto now = factor_layers(n, routes);
    const auto at = before.empty() ? "" : "@" + std::to_string(clock) + " ";
    for (std::size_t l = 0; l < n.layers.size(); ++l)
      if (before.empty() ? now[l] || why_no_factors(n, l, solver).empty() : now[l] != before[l])
        out += at + n.layers[l].name + (now[l] ? " sfb\n" : " ps\n");
    before = now;
  }
  return out;
}

}  // namespace poseidon
