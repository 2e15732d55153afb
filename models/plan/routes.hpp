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
enum class route : std::uint8_t { parameter_server = 0, factor_broadcast = 1 };
[[nodiscard]] std::string_view to_string(route r);

/// By parameter of the train net; empty: parameter_server throughout.
using parameter_routes = by_id<parameter_id, route>;
[[nodiscard]] bool on_factors(const parameter_routes& routes, parameter_id parameter);

/// By layer: whether it broadcasts factors.
[[nodiscard]] std::vector<bool> factor_layers(const net& n, const parameter_routes& routes);

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
  enum class kind { automatic, server, factors, listed };
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
};

/// "auto", "ps", "sfb", or a file with one `layer ps|sfb` a line, or `@clock layer ps|sfb` for a route that holds from that
/// clock on; # begins a comment.
/// Errors   spec_error with file and line.
[[nodiscard]] route_option parse_routes(const std::string& option);

/// The routes of a run whose layers `chosen` (by layer) broadcast factors.
[[nodiscard]] parameter_routes routes_of(const net& n, const std::vector<bool>& chosen);

/// By layer: whether an option other than automatic puts it on the factor route at `clock`.
/// Errors   spec_error: the file lists, for any clock, a layer that the net does not have or that cannot take that route.
[[nodiscard]] std::vector<bool> layers_of_option(const net& n, const route_option& option,
                                                 const ::caffe::SolverParameter& solver,
                                                 std::uint64_t clock = 0);

/// The clocks after `clock` at which a listed option changes routes, each with the routes from then on, by layer.
/// Errors   as layers_of_option.
[[nodiscard]] std::map<std::uint64_t, std::vector<bool>> changes_of_option(
    const net& n, const route_option& option, const ::caffe::SolverParameter& solver,
    std::uint64_t clock);

/// The file for --routes that repeats what was chosen: the routes by the clock from which they hold, the first ones from
/// the run's beginning. Lists each layer that could broadcast factors, then the layers that change.
[[nodiscard]] std::string routes_file(const net& n, const ::caffe::SolverParameter& solver,
                                      const std::map<std::uint64_t, parameter_routes>& by_clock);

}  // namespace poseidon
