// cpu/winograd/wide.hpp - see passes_for() in cpu/winograd/convolution.hpp.
#pragma once
#include "cpu/winograd/convolution.hpp"

namespace poseidon::cpu::winograd {

[[nodiscard]] const passes& wide_passes(layout form, std::size_t taps);

}  // namespace poseidon::cpu::winograd
