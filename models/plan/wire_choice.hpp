// models/plan/wire_choice.hpp - the wire format of each parameter, and the option that sets it.
#pragma once
#include "models/device/wire_format.hpp"
#include "models/net/net.hpp"
#include "models/plan/routes.hpp"

#include <map>
#include <string>

namespace poseidon {

/// The value of --wire.
struct wire_option {
  wire_format all = wire_format::float32;  ///< format of layers that no file names
  std::string file;                        ///< empty: none
  std::map<std::string, wire_format> layers;
  std::map<std::string, int> lines;  ///< line of each layer in the file
};

/// The name of a format, or a file with one `layer format` a line; # begins a comment. A layer that the
/// file does not name keeps float32.
/// Errors   spec_error with file and line.
[[nodiscard]] wire_option parse_wire(const std::string& option);

/// The format in which a net_parameter or a declared_parameter travels, where its layer or its program has `format`: small ones and
/// bundles have no blocks.
template <class Parameter>
[[nodiscard]] wire_format format_in_use(const Parameter& p, wire_format format) {
  return format_for(format, p.bundle ? 0 : static_cast<std::size_t>(count(p.shape)));
}

/// The formats of a run. Only learned parameters are reduced: running statistics are small, and frozen parameters are
/// sent once.
/// Errors   spec_error: a listed layer that the net does not have, that learns nothing, or that shares a parameter with a
///          layer of another format; or that has no parameter large enough for the format that is listed.
[[nodiscard]] parameter_formats formats_of(const net& n, const wire_option& option);

/// What a program's worker 0 asks for; format_in_use() says what comes of it.
[[nodiscard]] parameter_formats formats_asked(const net& declared, wire_format format);
[[nodiscard]] parameter_formats formats_in_use(const net& declared, parameter_formats asked);

/// Factors have one format: parameters on the route factor_broadcast become float32.
[[nodiscard]] parameter_formats on_the_server(parameter_formats formats,
                                              const parameter_routes& routes);

/// Lines for the user: the layers whose values are sent in a reduced format.
[[nodiscard]] std::vector<std::string> wire_notes(const net& n, const parameter_formats& formats);

}  // namespace poseidon
