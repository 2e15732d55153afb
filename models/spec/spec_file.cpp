#include "models/spec/spec_file.hpp"

#include <utility>

namespace poseidon {

std::string to_string(const spec_position& p) {
  if (p.line <= 0) return p.file;
  return p.file + ":" + std::to_string(p.line);
}

namespace {
std::string placed(const spec_position& where, const std::string& text) {
  const auto place = to_string(where);
  return place.empty() ? text : place + ": " + text;
}
}  // namespace

spec_error::spec_error(const spec_position& where, const std::string& text)
    : std::invalid_argument(placed(where, text)) {}
spec_error::spec_error(const std::string& text) : std::invalid_argument(text) {}

unsupported_layer::unsupported_layer(const spec_position& where, const std::string& text,
                                     std::string layer_type)
    : spec_error(where, text), type(std::move(layer_type)) {}

}  // namespace poseidon
