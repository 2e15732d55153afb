// models/device/block_format.hpp
//
// int8 and int4 on the wire: 256 values have one step, a bfloat16, and each is an integer times the step, from -127 to 127 or from -7 to 7.
// The step and not the largest magnitude travels: an integer of 8 bits times a bfloat16 is exact in float32, so all nodes add
// the same bits, whether their compilers fuse the product with the sum or not.
//
// The step is the largest magnitude divided by 127 or 7, rounded up to a bfloat16: so no value is cut off, and none errs by more than half a
// step. Near float32's largest value the step is bounded, so that 127 of them stay finite; only there the largest values are cut off.
// A block with a value that is not finite has the step NaN, and becomes NaN as a whole: the loss, a scaler or a check of gradients
// notice it as they do one NaN. A step that would be a denormal is 0, and so are its values: threads that flush denormals to
// zero, as those of a CPU device do, and threads that do not have the same bits.
//
// Layout  of each block its step, then its integers: int8 one in a byte; int4 two, the first one in the lower half.
// Cost    one pass over memory; a block stays in the first-level cache between its two loops. AVX2 where the processor has it, same bits.
#pragma once
#include "models/value_format.hpp"

#include <cstddef>

namespace poseidon {

/// What is encoded of two arrays.
enum class block_source { first, sum, difference };

/// A way to convert; the two have the same bits. `f` has blocks; n values; the bytes are wire_bytes(f, n).
struct block_codec {
  /// `b` is not read where the first array alone is encoded. `left`: where what rounding takes is written, 0 where that is not finite; null:
  /// nowhere. It may be `a` or `b`.
  void (*encode)(wire_format f, block_source of, const float* a, const float* b, std::size_t n,
                 std::byte* to, float* left);
  /// into = before + values; `before` null: values alone. It may be `into`.
  void (*decode)(wire_format f, const std::byte* from, std::size_t n, const float* before,
                 float* into);
};

[[nodiscard]] block_codec fastest_block_codec();
[[nodiscard]] block_codec portable_block_codec();

}  // namespace poseidon
