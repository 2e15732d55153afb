// cpu/resizing.hpp - layers behind a Filter on the CPU, see models/device/resizing_kernel.hpp.
#pragma once
#include "cpu/layer.hpp"

namespace poseidon::cpu {

/// A kernel around the one that the layer's type has.
/// Errors   see require_resizable().
[[nodiscard]] std::unique_ptr<kernel> make_resizing(const layer_context& c);

}  // namespace poseidon::cpu
