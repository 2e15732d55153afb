// models/plan/route_choice.hpp
//
// Predicts which route is faster for each layer, from shapes, the rate of the wire and the rate of the device. The byte
// rule of the paper (factors iff K P <= 2 M N / (M + N)) leaves out two costs: reconstructing the gradient from all nodes'
// factors, and the part of the transfer that is hidden behind the rest of the backward pass. On CPU nodes the first often
// decides, on fast wires the second.
#pragma once
#include "models/device/lowrank.hpp"
#include "models/device/wire_format.hpp"
#include "models/json.hpp"
#include "models/plan/routes.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace poseidon {

/// One layer's computation and communication on one node in one clock.
struct route_load {
  std::string name;
  factor_shape factors;    ///< this node's factors; rows 0: the layer cannot broadcast
  std::string refusal;     ///< for a layer with weights that cannot broadcast: the reason
  double values = 0;       ///< learned parameters
  double value_bytes = 4;  ///< bytes of one of them on the server's route, on average
  lowrank_shape lowrank;   ///< rank 0: the layer may not go by low rank
  /// Of the layer's other parameters, which go as they are where it goes by low rank.
  double values_beside = 0;
  std::string lowrank_refusal;  ///< why it may not, where its user has asked for it
  double backward_flop = 0;     ///< with the product that makes the weight gradient
  /// As measured on this node, instead of what flops and rates predict: seconds of the backward pass, with the product that
  /// makes the weight gradient, and of that product alone.
  struct seconds {
    double backward = 0, product = 0;
  };
  std::optional<seconds> measured = std::nullopt;
};

/// Loads of a net, in net order. `ranks`: by layer, of what the user has allowed; 0, or empty: none.
[[nodiscard]] std::vector<route_load> route_loads(const net& n, std::size_t micro_batches,
                                                  const ::caffe::SolverParameter& solver,
                                                  const parameter_formats& formats = {},
                                                  const std::vector<std::uint32_t>& ranks = {});

struct route_rates {
  std::size_t workers = 1;
  /// Where nodes have different shares of the batch: the largest share, and the sum of all, each divided by this node's
  /// share. A node sends one row of factors for each of its samples and reconstructs the gradient from all nodes' rows.
  /// 0: the number of workers.
  double largest_share = 1, all_shares = 0;
  /// Other nodes that keep a copy of the solver state of each value on the server's route (--survive): they get the sums of gradients
  /// as float32, where others get values in the format of the wire.
  std::size_t keepers = 0;
  double link_mbit_s = 1000;  ///< rate out of a node, and into it, for all peers together
  double lanes = 1;           ///< replicas, each with a thread of its own
  double cores = 1;
  /// Seconds that one thread takes for a product of that shape.
  std::function<double(const factor_shape&)> product_s;
  /// Seconds of the forward and backward passes of an iteration; 0: flops say it.
  double pass_s = 0;
  double flop_s = 1e10;       ///< rate of one lane, for layers that are no inner product
  double update_s_value = 0;  ///< seconds of one thread to apply the solver's rule to one value
  double add_s_value = 0;     ///< seconds of one thread to add one value
  /// Seconds of one thread to round one value, or to add one that came rounded.
  double round_s_value = 0;
  /// update_s_value where the gradient is reconstructed from factors; empty: the same as update_s_value.
  std::optional<double> factor_update_s_value = std::nullopt;
};

/// Of a device of which it is known how long a forward and a backward pass take, all passes of an iteration together: what big products
/// reach says little of a net whose layers wait for memory.
/// Writes   flop_s and pass_s of `r`.
void take_pass_time(route_rates& r, const std::vector<route_load>& loads, double pass_s);

/// One candidate, per node and clock.
struct route_cost {
  double bytes = 0;       ///< bytes sent; the same number is received
  double wire_ms = 0;     ///< time of these bytes on the wire
  double tail_ms = 0;     ///< time of one thread from the last byte to fresh parameters
  double wait_ms = 0;     ///< in which frames are on their way and nobody computes: of low rank
  double exposed_ms = 0;  ///< the part of wire and tail after the end of the backward pass
  /// Time that the lanes lose: the weight gradient, and the hidden part of the tail.
  double compute_ms = 0;
  [[nodiscard]] double total_ms() const { return exposed_ms + compute_ms; }
};

struct route_decision {
  std::size_t layer = 0;  ///< place in the net
  route_load load;
  route_cost server, factors, lowrank;
  route chosen = route::parameter_server;
  bool byte_rule = false;  ///< whether the paper's rule would broadcast
  std::string why;
};

/// Chooses layer by layer from the net's end, in the order of the backward pass, so that each layer meets the traffic of the
/// layers above it; then changes single choices while the total falls by at least 1 %. The server wins where it is slower by
/// less than 5 %, and where factors would save less than 5 % of the iteration: the server's route is exact on all processors
/// and gives the same choice in every run. Low rank, where the user allows it, has to be faster than the better one of the two by as much. The
/// answer lists only layers with an InnerProduct's weights and those for which low rank was asked, in net order; the cost of each
/// route holds for the other layers' choices.
[[nodiscard]] std::vector<route_decision> decide_routes(const std::vector<route_load>& loads,
                                                        const route_rates& rates);

/// The predicted time of an iteration with these routes, by load; or with the layers of `chosen` on the factor route and the others on
/// the server's.
struct route_forecast {
  /// Forward, backward and exposed communication, and the part of it that the routes cost: exposed communication, and the lanes' lost time.
  double whole_ms = 0, routes_ms = 0;
  double iteration_ms = 0;  ///< lanes and wire side by side, which is nearer to what is measured
  double bytes = 0;         ///< sent by a node in an iteration
};
[[nodiscard]] route_forecast forecast(const std::vector<route_load>& loads,
                                      const route_rates& rates, const layer_routes& chosen);
[[nodiscard]] route_forecast forecast(const std::vector<route_load>& loads,
                                      const route_rates& rates, const std::vector<bool>& chosen);

/// A table for people, and {"routes":[...]} for programs.
[[nodiscard]] std::string routes_table(const std::vector<route_decision>& decisions,
                                       const route_rates& rates);
[[nodiscard]] json_object routes_json(const std::vector<route_decision>& decisions,
                                      const route_rates& rates);

}  // namespace poseidon
