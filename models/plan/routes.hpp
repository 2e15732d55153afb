// models/plan/routes.hpp - by which route a parameter's gradient goes to the other nodes, and what the user says about it.
#pragma once
#include "models/device/factors.hpp"
#include "models/net/net.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "caffe.pb.h"

namespace poseidon {

/// parameter_server: its chunks' gradients go to their shards, fresh values come back.
/// factor_broadcast: u and v of an inner product go to every node, each makes the gradient and the update.
enum class route : std::uint8_t { parameter_server = 0, factor_broadcast = 1 };
[[nodiscard]] std::string_view to_string(route r);

/// By parameter of the train net; empty: parameter_server throughout.
using parameter_routes = std::vector<route>;
[[nodiscard]] bool on_factors(const parameter_routes& routes, std::size_t parameter);

/// By layer: does it broadcast factors?
[[nodiscard]] std::vector<bool> factor_layers(const net& n, const parameter_routes& routes);

/// u and v of one replica and micro-batch of an InnerProduct.
[[nodiscard]] factor_shape factors_of(const net& n, std::size_t layer);

/// Why a layer's gradient cannot go as factors; empty if it can.
[[nodiscard]] std::string why_no_factors(const net& n, std::size_t layer,
                                         const ::caffe::SolverParameter& solver);

/// The line for the user where the solver keeps every layer of a net that could otherwise broadcast factors from
/// doing so; empty where nothing does.
[[nodiscard]] std::string why_no_factors_at_all(const net& n,
                                                const ::caffe::SolverParameter& solver);

/// What --routes says.
struct route_option {
  enum class kind { automatic, server, factors, listed };
  kind what = kind::automatic;
  std::string file;  ///< of a listed one, for messages
  struct entry {
    std::string layer;
    route where = route::parameter_server;
    std::uint64_t clock = 0;  ///< from this one on
    int line = 0;             ///< where it stands
  };
  std::vector<entry>
      entries;  ///< of a listed one, by clock; a layer that is not there stays on the server
};

/// "auto", "ps", "sfb", or a file with one `layer ps|sfb` a line, or `@clock layer ps|sfb` for a route that holds from that
/// clock on; # begins a comment.
/// Errors   spec_error with file and line.
[[nodiscard]] route_option parse_routes(const std::string& option);

/// The routes of a run whose layers `chosen` (by layer) broadcast factors.
[[nodiscard]] parameter_routes routes_of(const net& n, const std::vector<bool>& chosen);

/// The layers (by layer) that a wish other than automatic puts on the factor route at `clock`.
/// Errors   spec_error: a listed layer that the net has not, or that cannot do what the file says, at whatever clock.
[[nodiscard]] std::vector<bool> layers_of_option(const net& n, const route_option& option,
                                                 const ::caffe::SolverParameter& solver,
                                                 std::uint64_t clock = 0);

/// The clocks after `clock` from which a listed wish has other routes than before them, with these, by layer.
/// Errors   as layers_of_option.
[[nodiscard]] std::map<std::uint64_t, std::vector<bool>> changes_of_option(
    const net& n, const route_option& option, const ::caffe::SolverParameter& solver,
    std::uint64_t clock);

}  // namespace poseidon
