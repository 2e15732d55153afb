// models/plan/wire_choice.hpp - which parameters travel in which format, and what the user says about it.
#pragma once
#include "models/device/wire_format.hpp"
#include "models/net/net.hpp"
#include "models/plan/routes.hpp"

#include <map>
#include <string>

namespace poseidon {

/// What --wire says.
struct wire_option {
  wire_format all = wire_format::float32;  ///< of layers that no file names
  std::string file;                        ///< empty: none
  std::map<std::string, wire_format> layers;
  std::map<std::string, int> lines;  ///< where each stands
};

/// "float32", "float16", "bfloat16", or a file with one `layer format` a line; # begins a comment. A layer that the
/// file does not name keeps float32.
/// Errors   spec_error with file and line.
[[nodiscard]] wire_option parse_wire(const std::string& option);

/// The formats of a run. Reduced are what the solver learns, not running statistics (they are few) and not what is
/// frozen (it travels once).
/// Errors   spec_error: a listed layer that the net has not, that learns nothing, or that shares a parameter with a
///          layer of another format.
[[nodiscard]] parameter_formats formats_of(const net& n, const wire_option& option);

/// Factors have one format: what goes by factor_broadcast becomes float32.
[[nodiscard]] parameter_formats on_the_server(parameter_formats formats,
                                              const parameter_routes& routes);

/// Lines for the user: which layers travel reduced.
[[nodiscard]] std::vector<std::string> wire_notes(const net& n, const parameter_formats& formats);

}  // namespace poseidon
