// cpu/layout.hpp - how a blob's values lie in memory inside a replica, and the way from one to
// another.
#pragma once
#include "cpu/bfloat16.hpp"
#include "models/shape.hpp"

#include <cstddef>

namespace poseidon::cpu {

/// plain: Caffe's row-major order. c8, c16: oneDNN's nChw8c and nChw16c, channels in blocks that a
/// vector register holds; a last block that is not full is padded, and the padding is zero at all
/// times. With _bf16: the same order of bfloat16 (cpu/bfloat16.hpp), in memory that counts as floats all the same.
/// pixels_bf16: oneDNN's nhwc, all channels of a pixel side by side, without padding. A blob has it only with whole blocks of channels.
enum class layout { plain, c8, c16, plain_bf16, c16_bf16, pixels_bf16 };

[[nodiscard]] constexpr bool is_bf16(layout form) {
  return form == layout::plain_bf16 || form == layout::c16_bf16 || form == layout::pixels_bf16;
}

/// The channels that kernels take at a time.
[[nodiscard]] constexpr std::size_t block_of(layout form) {
  const bool is_plain = form == layout::plain || form == layout::plain_bf16;
  return is_plain ? 1 : form == layout::c8 ? 8 : 16;
}

/// The axes of a blob as image kernels see them; missing axes are 1, those after the second are one
/// plane.
struct image_extent {
  std::size_t samples = 1, channels = 1, plane = 1;
};
[[nodiscard]] image_extent image_of(const shape& s);

/// Where the blocks of an image lie: value `lane` of pixel `p` in block `b` of image `n` is at n * image + b * block + p * pixel + lane.
struct block_places {
  std::size_t blocks = 1;  ///< of an image
  std::size_t image = 0, block = 0, pixel = 1;
};
[[nodiscard]] block_places places_of(layout form, const image_extent& e);

/// Values of a blob of this shape, padding included.
[[nodiscard]] std::size_t stored_size(const shape& s, layout form);

/// Floats of memory that so many values take.
[[nodiscard]] constexpr std::size_t floats_of(std::size_t values, layout form) {
  return is_bf16(form) ? (values + 1) / 2 : values;
}

/// A blob's memory as values of T: float, or bfloat16 where the layout says so.
template <class T>
[[nodiscard]] T* as(float* memory) {
  return reinterpret_cast<T*>(memory);
}
template <class T>
[[nodiscard]] const T* as(const float* memory) {
  return reinterpret_cast<const T*>(memory);
}

/// Calls f(T{}) with the type of this layout's values.
template <class F>
decltype(auto) with_type(layout form, F f) {
  return is_bf16(form) ? f(bfloat16{}) : f(float{});
}

/// Copies all values from one layout to the other; writes zeros into padding. To bfloat16 it rounds.
void relayout(const shape& s, layout from_form, const float* from, layout to_form, float* to);

}  // namespace poseidon::cpu
