// models/plan/routes.hpp - the route of each parameter's gradient to the other nodes, and the option that sets it.
#pragma once
#include "models/caffe.hpp"
#include "models/device/factors.hpp"
#include "models/indexed.hpp"
#include "models/net/net.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace poseidon {

/// parameter_server: the gradients of its chunks go to their shards, which send fresh values back.
/// factor_broadcast: u and v of an inner product go to every node; each node reconstructs the gradient and updates its copy.
/// lowrank_4, lowrank_8: a product of two matrices of that rank goes in place of the gradient (models/device/lowrank.hpp); each
/// node updates its copy with it. The two matrices are float32, or, where --wire rounds the layer, bfloat16.
enum class route : std::uint8_t {
  parameter_server = 0,
  factor_broadcast = 1,
  lowrank_4 = 2,
  lowrank_8 = 3,
  lowrank_4_bfloat16 = 4,
  lowrank_8_bfloat16 = 5
};
inline constexpr std::size_t route_kinds = 6;
[[nodiscard]] std::string_view to_string(route r);
/// 0: not by low rank.
[[nodiscard]] constexpr std::uint32_t rank_of(route r) {
  if (r == route::lowrank_4 || r == route::lowrank_4_bfloat16) return 4;
  return r == route::lowrank_8 || r == route::lowrank_8_bfloat16 ? 8 : 0;
}
/// Whether P and Q travel as bfloat16.
[[nodiscard]] constexpr bool is_rounded(route r) {
  return r == route::lowrank_4_bfloat16 || r == route::lowrank_8_bfloat16;
}
/// `rank`: 4 or 8.
[[nodiscard]] constexpr route lowrank_of(std::uint32_t rank, bool rounded = false) {
  if (rank == 8) return rounded ? route::lowrank_8_bfloat16 : route::lowrank_8;
  return rounded ? route::lowrank_4_bfloat16 : route::lowrank_4;
}
inline constexpr std::uint32_t default_rank = 4;

/// By parameter of the train net; empty: parameter_server throughout.
using parameter_routes = by_id<parameter_id, route>;
[[nodiscard]] route route_of(const parameter_routes& routes, parameter_id parameter);
[[nodiscard]] bool on_factors(const parameter_routes& routes, parameter_id parameter);
/// Whether each node has a copy of its own and updates it: all routes but parameter_server.
[[nodiscard]] bool on_every_node(const parameter_routes& routes, parameter_id parameter);

/// By layer of a net.
using layer_routes = std::vector<route>;
/// What the routes of its first parameter make each layer.
[[nodiscard]] layer_routes routes_of_layers(const net& n, const parameter_routes& routes);
/// By layer: whether it broadcasts factors.
[[nodiscard]] std::vector<bool> factor_layers(const net& n, const parameter_routes& routes);

/// Whether several layers use a parameter.
[[nodiscard]] bool is_shared(const net& n, std::size_t parameter);

/// u and v of one replica and micro-batch of an InnerProduct, or of what a program gives in a clock.
[[nodiscard]] factor_shape factors_of(const net& n, std::size_t layer);

/// The reason why a layer's gradient cannot be sent as factors; empty if it can.
[[nodiscard]] std::string why_no_factors(const net& n, std::size_t layer,
                                         const ::caffe::SolverParameter& solver);

/// A line for the user where a setting of the solver keeps all layers of the net from broadcasting factors; empty
/// otherwise.
[[nodiscard]] std::string why_no_factors_at_all(const net& n,
                                                const ::caffe::SolverParameter& solver);

/// The value of --routes.
struct route_option {
  enum class kind { automatic, server, factors, listed, lowrank };
  kind what = kind::automatic;
  std::string file;  ///< the file of a list, for messages
  struct entry {
    std::string layer;
    route where = route::parameter_server;
    std::uint64_t clock = 0;  ///< the first clock for which the entry holds
    int line = 0;             ///< its line in the file
  };
  /// Lines of the file, by clock; a layer without one stays on the server.
  std::vector<entry> entries;
  /// Of --rank, 4 or 8; 0: not given. Where the option is automatic, layers may then go by low rank.
  std::uint32_t rank = 0;
};

/// "auto", "ps", "sfb", "lowrank", or a file with one `layer ROUTE` a line, or `@clock layer ROUTE` for a route that holds from that
/// clock on; # begins a comment. ROUTE is ps, sfb, lowrank (of `rank`, or default_rank), or a lowrank route by its name. `rank`: 0 where none is
/// given.
/// Errors   spec_error with file and line, or naming both options where a rank is given that no layer can take.
[[nodiscard]] route_option parse_routes(const std::string& option, std::uint32_t rank = 0);

/// The routes of a run with these routes of layers.
[[nodiscard]] parameter_routes routes_of(const net& n, const layer_routes& chosen);
/// The same where layers `chosen` broadcast factors and no other leaves the server.
[[nodiscard]] parameter_routes routes_of(const net& n, const std::vector<bool>& chosen);

/// By layer: where an option other than automatic puts it at `clock`.
/// Errors   spec_error: the file lists, for any clock, a layer that the net does not have or that cannot take that route.
[[nodiscard]] layer_routes layers_of_option(const net& n, const route_option& option,
                                            const ::caffe::SolverParameter& solver,
                                            std::uint64_t clock = 0);

/// The clocks after `clock` at which a listed option changes routes, each with the routes from then on, by layer.
/// Errors   as layers_of_option.
[[nodiscard]] std::map<std::uint64_t, layer_routes> changes_of_option(
    const net& n, const route_option& option, const ::caffe::SolverParameter& solver,
    std::uint64_t clock);

/// The file for --routes that repeats what was chosen: the routes by the clock from which they hold, the first ones from
/// the run's beginning. Lists each layer that could broadcast factors, then the layers that change.
[[nodiscard]] std::string routes_file(const net& n, const ::caffe::SolverParameter& solver,
                                      const std::map<std::uint64_t, parameter_routes>& by_clock);

}  // namespace poseidon
