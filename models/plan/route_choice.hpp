// models/plan/route_choice.hpp
//
// Which route is faster for which layer, as arithmetic on what is known: shapes, the rate of the wire, the rate of the
// device. The byte rule of the paper (factors iff K P <= 2 M N / (M + N)) counts neither what it costs to make the
// gradient again from everybody's factors, nor what of the wire hides behind the rest of the backward pass; on CPU
// nodes the first often decides, and on fast wires the second.
#pragma once
#include "models/device/wire_format.hpp"
#include "models/plan/routes.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace poseidon {

/// What one layer computes and sends on one node in a clock.
struct route_load {
  std::string name;
  factor_shape factors;      ///< of the node; rows 0: the layer cannot broadcast
  std::string refusal;       ///< why not, for a layer of weights that cannot
  double values = 0;         ///< learned parameters
  double value_bytes = 4;    ///< of one of these on the server's route, on average
  double backward_flop = 0;  ///< with the product that makes the weight gradient
};

/// Loads of a net, in net order.
[[nodiscard]] std::vector<route_load> route_loads(const net& n, std::size_t micro_batches,
                                                  const ::caffe::SolverParameter& solver,
                                                  const parameter_formats& formats = {});

struct route_rates {
  std::size_t workers = 1;
  /// Where nodes have different shares of the batch: the largest one, and all together, over this node's. A node sends as
  /// many rows of factors as it has samples, and makes the gradient of everybody's. 0: as many as there are workers.
  double largest_share = 1, all_shares = 0;
  double link_mbit_s = 1000;  ///< out of a node and into it, each, all peers together
  double lanes = 1;           ///< replicas, each with a thread of its own
  double cores = 1;
  /// Seconds of one thread for a product of that shape.
  std::function<double(const factor_shape&)> product_s;
  double flop_s = 1e10;       ///< of one lane, for layers that are no inner product
  double update_s_value = 0;  ///< seconds of one thread to apply the solver's rule to one value
  double add_s_value = 0;     ///< to add one value
  /// The same as update_s_value, where the gradient is made of factors; none: the same.
  std::optional<double> factor_update_s_value = std::nullopt;
};

/// One candidate, per node and clock.
struct route_cost {
  double bytes = 0;       ///< sent; as many are received
  double wire_ms = 0;     ///< these on the wire
  double tail_ms = 0;     ///< one thread, from the last byte to fresh parameters
  double exposed_ms = 0;  ///< of wire and tail: what is left when the backward pass is over
  double compute_ms =
      0;  ///< what the lanes lose: the weight gradient, and what the hidden part of the tail takes
  [[nodiscard]] double total_ms() const { return exposed_ms + compute_ms; }
};

struct route_decision {
  std::size_t layer = 0;  ///< place in the net
  route_load load;
  route_cost server, factors;
  route chosen = route::parameter_server;
  bool byte_rule = false;  ///< the paper's would broadcast
  std::string why;
};

/// Chooses for each layer by itself, from the net's end as the backward pass meets them, so that each finds the wire as
/// those above it leave it; then changes single choices as long as the sum over all layers falls by 1 %. The server wins
/// ties of less than 5 %, and wherever factors would save less than 2 % of the iteration: it is exact, whatever the nodes'
/// processors, and the same choice in every run. Only layers with an InnerProduct's weights are in
/// the answer, in net order; each route's cost is that beside the others' choices.
[[nodiscard]] std::vector<route_decision> decide_routes(const std::vector<route_load>& loads,
                                                        const route_rates& rates);

/// What an iteration takes with the layers of `chosen` (by load) on the factor route and the others on the server's.
struct route_forecast {
  double routes_ms =
      0;  ///< what of it the routes cost: exposed communication, and what the lanes lose
  double iteration_ms = 0;  ///< forward, backward, and exposed communication
};
[[nodiscard]] route_forecast forecast(const std::vector<route_load>& loads,
                                      const route_rates& rates, const std::vector<bool>& chosen);

/// A table for people, and {"routes":[...]} for programs.
[[nodiscard]] std::string routes_table(const std::vector<route_decision>& decisions,
                                       const route_rates& rates);
[[nodiscard]] std::string routes_json(const std::vector<route_decision>& decisions,
                                      const route_rates& rates);

}  // namespace poseidon
