#include "models/plan/lowrank_routes.hpp"

#include <algorithm>
#include <utility>

namespace poseidon {

bool has_matrix(const net_layer& layer) {
  if (layer.type == "Declared") return layer.parameter_shapes.front().size() > 1;
  return layer.type == "InnerProduct" || layer.type == "Convolution" ||
         layer.type == "Deconvolution";
}

lowrank_shape lowrank_shape_of(const net& n, std::size_t layer, std::uint32_t rank) {
  const auto& dims = n.parameters[n.layers[layer].parameters.front()].shape;
  const auto rows = static_cast<std::size_t>(dims.front());
  return {rows, rows == 0 ? 0 : static_cast<std::size_t>(count(dims)) / rows, rank};
}

std::size_t lowrank_first_values(const net& n, std::size_t layer, std::uint32_t rank) {
  auto values = lowrank_shape_of(n, layer, rank).p_values();
  const auto& parameters = n.layers[layer].parameters;
  for (std::size_t i = 1; i < parameters.size(); ++i)
    if (is_learned(n, parameters[i]))
      values += static_cast<std::size_t>(count(n.parameters[parameters[i]].shape));
  return values + (n.layers[layer].type == "Declared" ? 1 : 0);
}

lowrank_bytes lowrank_bytes_of(const net& n, std::size_t layer, route by) {
  const auto shape = lowrank_shape_of(n, layer, rank_of(by));
  const auto format = is_rounded(by) ? wire_format::bfloat16 : wire_format::float32;
  const auto beside = lowrank_first_values(n, layer, rank_of(by)) - shape.p_values();
  return {wire_bytes(format, shape.p_values()) + sizeof(float) * beside,
          wire_bytes(format, shape.q_values())};
}

layer_routes rounded_lowrank(const net& n, layer_routes routes, const parameter_formats& formats) {
  for (std::size_t l = 0; l < routes.size(); ++l) {
    const auto rank = rank_of(routes[l]);
    if (rank == 0) continue;
    const auto weights = as_id<parameter_id>(n.layers[l].parameters.front());
    if (format_of(formats, weights) != wire_format::float32) routes[l] = lowrank_of(rank, true);
  }
  return routes;
}

std::string why_no_lowrank(const ::caffe::SolverParameter& solver) {
  if (solver.clip_gradients() >= 0)
    return "clip_gradients needs the norm of all gradients, which only shards add up";
  if (solver.poseidon().outer_steps() > 0)
    return "outer steps send what parameters have moved, and only the server's route does";
  if (solver.debug_info()) return "debug_info prints gradients, which nobody has as a whole";
  return {};
}

std::string why_no_lowrank(const net& n, std::size_t layer, std::uint32_t rank,
                           const ::caffe::SolverParameter& solver) {
  const auto& l = n.layers[layer];
  if (!has_matrix(l) && l.type == "Declared")
    return "it has fewer than two dimensions: only a matrix is sent as P and Q";
  if (!has_matrix(l))
    return "it is none of InnerProduct, Convolution and Deconvolution, whose weights are matrices";
  for (const auto p : l.parameters)
    if (is_shared(n, p)) return "it shares parameters with another layer";
  if (n.parameters[l.parameters[0]].given) return "worker 0 gives it as it is";
  if (n.parameters[l.parameters[0]].bundle) return "it is a bundle, and no matrix";
  if (!l.learn.at(0) || !is_learned(n, l.parameters[0]))
    return "lr_mult of its weights is 0: nothing is sent";
  if (!l.needs_backward) return "no loss reaches it: its gradient is zero";
  const auto s = lowrank_shape_of(n, layer, rank);
  if (2 * (s.p_values() + s.q_values()) > s.values())
    return "at rank " + std::to_string(rank) + " its " + std::to_string(s.rows) + " x " +
           std::to_string(s.columns) + " matrix would save less than half of its values";
  if (std::max(lowrank_first_values(n, layer, rank), s.q_values()) > max_factor_piece)
    return "its " + std::to_string(s.rows) + " x " + std::to_string(s.columns) +
           " matrix is too large for one frame of P or Q";
  return why_no_lowrank(solver);
}

std::vector<std::size_t> lowrank_layers(const net& n, const parameter_routes& routes) {
  const auto of_layers = routes_of_layers(n, routes);
  std::vector<std::size_t> out;
  for (std::size_t l = 0; l < of_layers.size(); ++l)
    if (rank_of(of_layers[l]) > 0) out.push_back(l);
  return out;
}

std::vector<worker_id> lowrank_owners(const net& n, const parameter_routes& routes,
                                      std::size_t workers) {
  const auto of_layers = routes_of_layers(n, routes);
  std::vector<std::pair<std::size_t, std::size_t>> by_size;  // values, layer
  for (std::size_t l = 0; l < n.layers.size(); ++l)
    if (const auto rank = rank_of(of_layers[l]); rank > 0)
      by_size.emplace_back(
          lowrank_first_values(n, l, rank) + lowrank_shape_of(n, l, rank).q_values(), l);
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<worker_id> out(n.layers.size());
  std::vector<std::size_t> load(workers, 0);
  for (const auto& [values, l] : by_size) {
    const auto least = std::min_element(load.begin(), load.end());
    out[l] = as_id<worker_id>(static_cast<std::size_t>(least - load.begin()));
    *least += values;
  }
  return out;
}

}  // namespace poseidon
