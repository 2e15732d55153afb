// gpu/kernels/elementwise.hpp - kernels that compute each value independently. All are enqueued to `s` and return
// immediately; n is a number of values, of one type in each call; outputs are overwritten and may be an input's memory.
#pragma once
#include "gpu/runtime/runtime.hpp"
#include "gpu/runtime/values.hpp"
#include "models/net/activation.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace poseidon::gpu {

/// y = f(x)
void apply(stream& s, const activation& f, std::size_t n, const_values x, values y);
/// dx = dy * f'. `x` is not read where !f.needs_x().
void apply_derivative(stream& s, const activation& f, std::size_t n, const_values x, const_values y,
                      const_values dy, values dx);

void fill(stream& s, std::size_t n, float value, values y);
/// y = a x
void scale(stream& s, std::size_t n, float a, const_values x, values y);
/// z = a x + b y; a result that is not above 0 is multiplied by `slope`.
void add_scaled(stream& s, std::size_t n, float a, const_values x, float b, const_values y,
                values z, float slope = 1);
/// The gradients of add_scaled(): dx = a g, dz = b g, where g is dy, or dy + more, times `slope` where y is not above 0.
/// `more` and dz may be null.
void add_scaled_backward(stream& s, std::size_t n, float slope, const_values y, const_values dy,
                         const_values more, float a, values dx, float b, values dz);
/// z = the sum of 2 to 4 blobs, added in their order.
void add_up(stream& s, std::size_t n, std::span<const const_values> blobs, values z);
/// z = x y
void multiply(stream& s, std::size_t n, const_values x, const_values y, values z);
/// z = x - y
inline void subtract(stream& s, std::size_t n, const_values x, const_values y, values z) {
  add_scaled(s, n, 1, x, -1, y, z);
}

/// One step of a maximum over several blobs: takes x where it is larger than y (`ties`: or equal), and notes
/// `number` as the winner.
void take_larger(stream& s, std::size_t n, const_values x, bool ties, std::int32_t number, values y,
                 std::int32_t* winner);
/// dx = dy where `number` won, else 0.
void give_to_winner(stream& s, std::size_t n, std::int32_t number, const std::int32_t* winner,
                    const_values dy, values dx);
/// Fills integers.
void fill(stream& s, std::size_t n, std::int32_t value, std::int32_t* y);
/// y = the integer x.
void to_floats(stream& s, std::size_t n, const std::int32_t* x, float* y);

/// The random factors of one dropout layer in one pass, see models/random.hpp.
struct dropout_draw {
  std::uint64_t seed = 0, first_sample = 0;
  std::uint32_t layer = 0;
  float ratio = 0;  ///< the fraction of values that become 0, in [0, 1]
};
/// y = x * factor, the factors being 0 or 1 / (1 - ratio). The same bits as the CPU's; the gradient is the same
/// function of dy.
void drop_out(stream& s, const dropout_draw& draw, std::size_t samples, std::size_t per_sample,
              const float* x, float* y);

}  // namespace poseidon::gpu
