// models/net/refusal.hpp - how a device says that it cannot compile a layer.
#pragma once
#include "models/net/net.hpp"

#include <string>

namespace poseidon {

/// Throws spec_error: `layer "x" (Type): text`, with its place in the file.
[[noreturn]] void refuse_layer(const net_layer& layer, const std::string& text);

/// The same for a net that would need the gradient of bottom i, which holds `what`.
[[noreturn]] void refuse_gradient(const net_layer& layer, std::size_t i, const std::string& what);

}  // namespace poseidon
