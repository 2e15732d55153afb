#include "cpu/layout.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace poseidon::cpu {
namespace {

template <std::size_t Block, class From, class To>
void pack(const image_extent& e, const From* from, To* to) {
  const std::size_t blocks = (e.channels + Block - 1) / Block;
  for (std::size_t n = 0; n < e.samples; ++n) {
    for (std::size_t b = 0; b < blocks; ++b) {
      const std::size_t width = std::min(Block, e.channels - b * Block);
      const From* x = from + (n * e.channels + b * Block) * e.plane;
      for (std::size_t i = 0; i < e.plane; ++i, to += Block) {
        for (std::size_t c = 0; c < width; ++c) to[c] = x[c * e.plane + i];
        for (std::size_t c = width; c < Block; ++c) to[c] = 0;
      }
    }
  }
}

template <std::size_t Block, class From, class To>
void unpack(const image_extent& e, const From* from, To* to) {
  const std::size_t blocks = (e.channels + Block - 1) / Block;
  for (std::size_t n = 0; n < e.samples; ++n) {
    for (std::size_t b = 0; b < blocks; ++b, from += e.plane * Block) {
      const std::size_t width = std::min(Block, e.channels - b * Block);
      To* y = to + (n * e.channels + b * Block) * e.plane;
      for (std::size_t c = 0; c < width; ++c) {
        for (std::size_t i = 0; i < e.plane; ++i) y[c * e.plane + i] = from[i * Block + c];
      }
    }
  }
}

/// Calls f(from, to) with both memories as what they hold.
template <class F>
void typed(layout from_form, const float* from, layout to_form, float* to, F f) {
  with_type(from_form, [&](auto of_from) {
    with_type(to_form,
              [&](auto of_to) { f(as<decltype(of_from)>(from), as<decltype(of_to)>(to)); });
  });
}

/// From plain to blocks.
void pack(layout from_form, layout form, const image_extent& e, const float* from, float* to) {
  typed(from_form, from, form, to, [&](const auto* x, auto* y) {
    block_of(form) == 8 ? pack<8>(e, x, y) : pack<16>(e, x, y);
  });
}

void unpack(layout form, layout to_form, const image_extent& e, const float* from, float* to) {
  typed(form, from, to_form, to, [&](const auto* x, auto* y) {
    block_of(form) == 8 ? unpack<8>(e, x, y) : unpack<16>(e, x, y);
  });
}

/// Where both have the same order.
void convert(layout from_form, layout to_form, std::size_t values, const float* from, float* to) {
  if (is_bf16(from_form) == is_bf16(to_form))
    std::memcpy(to, from, floats_of(values, to_form) * sizeof(float));
  else if (is_bf16(to_form))
    narrow(from, values, as<bfloat16>(to));
  else
    widen(as<bfloat16>(from), values, to);
}

}  // namespace

image_extent image_of(const shape& s) {
  return {s.empty() ? 1 : static_cast<std::size_t>(s[0]),
          s.size() < 2 ? 1 : static_cast<std::size_t>(s[1]),
          s.size() < 3 ? 1 : static_cast<std::size_t>(count(s, 2, s.size()))};
}

std::size_t stored_size(const shape& s, layout form) {
  const image_extent e = image_of(s);
  const std::size_t block = block_of(form);
  return e.samples * ((e.channels + block - 1) / block * block) * e.plane;
}

void relayout(const shape& s, layout from_form, const float* from, layout to_form, float* to) {
  const image_extent e = image_of(s);
  const std::size_t from_block = block_of(from_form), to_block = block_of(to_form);
  if (from_block == to_block) {
    convert(from_form, to_form, stored_size(s, from_form), from, to);
  } else if (from_block == 1) {
    pack(from_form, to_form, e, from, to);
  } else if (to_block == 1) {
    unpack(from_form, to_form, e, from, to);
  } else {  // rare: two convolutions that chose different blocks
    std::vector<float> between(e.samples * e.channels * e.plane);
    unpack(from_form, layout::plain, e, from, between.data());
    pack(layout::plain, to_form, e, between.data(), to);
  }
}

}  // namespace poseidon::cpu
