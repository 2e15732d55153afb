#include "cpu/kernels/padded_image.hpp"

#include <algorithm>
#include <immintrin.h>

namespace poseidon::cpu {

void padded_image::pack(layout form, const float* from, float* to) const {
  const std::size_t plane = height * width;
  if (form == layout::plain) {
    for (std::size_t c = 0; c < channels; ++c) {
      for (std::size_t h = 0; h < height; ++h) {
        float* row = to + at(h, 0) + c;
        for (std::size_t w = 0; w < width; ++w) row[w * channels] = *from++;
      }
    }
    return;
  }
  // A block that is not full spills zeros into the next pixel, which is written after it.
  const std::size_t block = block_of(form);
  for (std::size_t h = 0; h < height; ++h) {
    for (std::size_t w = 0; w < width; ++w) {
      const float* pixel = from + (h * width + w) * block;
      float* out = to + at(h, w);
      for (std::size_t c = 0; c < channels; c += 8) {
        const float* x = pixel + c / block * plane * block + c % block;
        _mm256_storeu_ps(out + c, _mm256_loadu_ps(x));
      }
    }
  }
}

void padded_image::unpack(layout form, const float* from, float* to) const {
  const std::size_t plane = height * width;
  if (form == layout::plain) {
    for (std::size_t c = 0; c < channels; ++c) {
      for (std::size_t h = 0; h < height; ++h) {
        const float* row = from + at(h, 0) + c;
        for (std::size_t w = 0; w < width; ++w) *to++ = row[w * channels];
      }
    }
    return;
  }
  const std::size_t block = block_of(form);
  const std::size_t stored = (channels + block - 1) / block * block;
  for (std::size_t c = 0; c < stored; c += 8) {
    const auto width_here =
        static_cast<int>(c < channels ? std::min<std::size_t>(8, channels - c) : 0);
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i keep = _mm256_cmpgt_epi32(_mm256_set1_epi32(width_here), lanes);
    float* out = to + c / block * plane * block + c % block;
    for (std::size_t h = 0; h < height; ++h) {
      const float* row = from + at(h, 0) + c;
      for (std::size_t w = 0; w < width; ++w, out += block) {
        _mm256_storeu_ps(out, _mm256_maskload_ps(row + w * channels, keep));
      }
    }
  }
}

}  // namespace poseidon::cpu
