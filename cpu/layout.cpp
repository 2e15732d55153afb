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

/// Between plain and pixels, sixteen channels and a few pixels at a time, so that what is read stays in the cache until it is written.
template <class From, class To>
void transpose(const image_extent& e, bool to_pixels, const From* from, To* to) {
  constexpr std::size_t channels = 16, pixels = 64;
  const std::size_t image = e.channels * e.plane;
  for (std::size_t n = 0; n < e.samples; ++n, from += image, to += image) {
    for (std::size_t c0 = 0; c0 < e.channels; c0 += channels) {
      const std::size_t width = std::min(channels, e.channels - c0);
      for (std::size_t p0 = 0; p0 < e.plane; p0 += pixels) {
        const std::size_t end = std::min(e.plane, p0 + pixels);
        for (std::size_t c = c0; c < c0 + width; ++c) {
          for (std::size_t p = p0; p < end; ++p) {
            const std::size_t plain = c * e.plane + p, side_by_side = p * e.channels + c;
            to_pixels ? to[side_by_side] = from[plain] : to[plain] = from[side_by_side];
          }
        }
      }
    }
  }
}

/// Between blocks of channels and pixels, block by block; padding of either gets zeros.
template <class From, class To>
void move_blocks(const image_extent& e, layout from_form, const From* from, layout to_form,
                 To* to) {
  const block_places f = places_of(from_form, e), t = places_of(to_form, e);
  const std::size_t step = std::min(block_of(from_form), block_of(to_form));
  const std::size_t padded =
      to_form == layout::pixels_bf16 ? e.channels : t.blocks * block_of(to_form);
  const auto at = [](const block_places& places, layout form, std::size_t n, std::size_t c) {
    const std::size_t block = block_of(form);
    return n * places.image + c / block * places.block + c % block;
  };
  for (std::size_t n = 0; n < e.samples; ++n) {
    for (std::size_t c = 0; c < padded; c += step) {
      const std::size_t end = std::min(step, padded - c);
      const std::size_t width = c < e.channels ? std::min(end, e.channels - c) : 0;
      const From* x = from + (width > 0 ? at(f, from_form, n, c) : 0);
      To* y = to + at(t, to_form, n, c);
      for (std::size_t p = 0; p < e.plane; ++p) {
        for (std::size_t k = 0; k < width; ++k) y[p * t.pixel + k] = x[p * f.pixel + k];
        for (std::size_t k = width; k < end; ++k) y[p * t.pixel + k] = 0;
      }
    }
  }
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

block_places places_of(layout form, const image_extent& e) {
  const std::size_t block = block_of(form), blocks = (e.channels + block - 1) / block;
  if (form == layout::pixels_bf16) return {blocks, e.channels * e.plane, block, e.channels};
  return {blocks, blocks * e.plane * block, e.plane * block, block};
}

std::size_t stored_size(const shape& s, layout form) {
  if (form == layout::pixels_bf16) return static_cast<std::size_t>(count(s));
  const image_extent e = image_of(s);
  const std::size_t block = block_of(form);
  return e.samples * ((e.channels + block - 1) / block * block) * e.plane;
}

void relayout(const shape& s, layout from_form, const float* from, layout to_form, float* to) {
  const image_extent e = image_of(s);
  const std::size_t from_block = block_of(from_form), to_block = block_of(to_form);
  if (from_form != to_form &&
      (from_form == layout::pixels_bf16 || to_form == layout::pixels_bf16)) {
    typed(from_form, from, to_form, to, [&](const auto* x, auto* y) {
      from_block == 1 || to_block == 1 ? transpose(e, to_form == layout::pixels_bf16, x, y)
                                       : move_blocks(e, from_form, x, to_form, y);
    });
  } else if (from_block == to_block) {
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
