#include "cpu/layout.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace poseidon::cpu {
namespace {

template <std::size_t Block>
void pack(const image_extent& e, const float* from, float* to) {
  const std::size_t blocks = (e.channels + Block - 1) / Block;
  for (std::size_t n = 0; n < e.samples; ++n) {
    for (std::size_t b = 0; b < blocks; ++b) {
      const std::size_t width = std::min(Block, e.channels - b * Block);
      const float* x = from + (n * e.channels + b * Block) * e.plane;
      for (std::size_t i = 0; i < e.plane; ++i, to += Block) {
        for (std::size_t c = 0; c < width; ++c) to[c] = x[c * e.plane + i];
        for (std::size_t c = width; c < Block; ++c) to[c] = 0;
      }
    }
  }
}

template <std::size_t Block>
void unpack(const image_extent& e, const float* from, float* to) {
  const std::size_t blocks = (e.channels + Block - 1) / Block;
  for (std::size_t n = 0; n < e.samples; ++n) {
    for (std::size_t b = 0; b < blocks; ++b, from += e.plane * Block) {
      const std::size_t width = std::min(Block, e.channels - b * Block);
      float* y = to + (n * e.channels + b * Block) * e.plane;
      for (std::size_t c = 0; c < width; ++c) {
        for (std::size_t i = 0; i < e.plane; ++i) y[c * e.plane + i] = from[i * Block + c];
      }
    }
  }
}

void pack(layout form, const image_extent& e, const float* from, float* to) {
  form == layout::c8 ? pack<8>(e, from, to) : pack<16>(e, from, to);
}

void unpack(layout form, const image_extent& e, const float* from, float* to) {
  form == layout::c8 ? unpack<8>(e, from, to) : unpack<16>(e, from, to);
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
  if (from_form == to_form) {
    std::memcpy(to, from, stored_size(s, from_form) * sizeof(float));
  } else if (from_form == layout::plain) {
    pack(to_form, e, from, to);
  } else if (to_form == layout::plain) {
    unpack(from_form, e, from, to);
  } else {  // rare: two convolutions that chose different blocks
    std::vector<float> between(e.samples * e.channels * e.plane);
    unpack(from_form, e, from, between.data());
    pack(to_form, e, between.data(), to);
  }
}

}  // namespace poseidon::cpu
