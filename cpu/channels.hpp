// cpu/channels.hpp
//
// Loops over a blob whose channels (axis 1) each have a number of their own - a factor, a mean, a
// slope - in every layout. A blob is a row of runs: one image's block of 8 or 16 channels in a
// blocked layout, one of its channels in the plain one, and one block of a few pixels where channels lie side by side.
#pragma once
#include "cpu/blob.hpp"
#include "cpu/lanes.hpp"

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <vector>

namespace poseidon::cpu {

/// One image's values of one block of channels, or some of them.
struct channel_run {
  std::size_t at;       ///< place of its first value in the blob
  std::size_t channel;  ///< its first channel; padded up to whole blocks
  std::size_t end;      ///< behind the last pixel's place
  std::size_t step;     ///< from one pixel to the next
  std::size_t pixels;   ///< of this run
  std::size_t before;   ///< of the same channels, in the runs before

  /// From one place to the next of a loop that takes a V at a time.
  template <class V>
  [[nodiscard]] constexpr std::size_t step_for() const {
    return std::is_same_v<V, sixteen> ? step : step_of<V>;
  }
};

/// Where a block's channels are a part of each pixel, the cache has to keep the pixels until their last block.
[[nodiscard]] inline std::size_t pixels_at_a_time(const image_extent& e) {
  constexpr std::size_t values = 2048, fewest = 16;
  return std::max(fewest, values / e.channels);
}

/// Calls f(run) for every block of every image, in the order of memory where blocks lie one after the other.
template <class F>
void each_run(layout form, const image_extent& e, F f) {
  const std::size_t block = block_of(form);
  const block_places places = places_of(form, e);
  const std::size_t most = form == layout::pixels_bf16 ? pixels_at_a_time(e) : e.plane;
  for (std::size_t n = 0; n < e.samples; ++n) {
    for (std::size_t p = 0; p < e.plane; p += most) {
      const std::size_t pixels = std::min(most, e.plane - p);
      for (std::size_t b = 0; b < places.blocks; ++b) {
        const std::size_t at = n * places.image + b * places.block + p * places.pixel;
        f({at, b * block, at + pixels * places.pixel, places.pixel, pixels, n * e.plane + p});
      }
    }
  }
}

/// Channels with the padding of the layout.
[[nodiscard]] inline std::size_t padded_channels(layout form, const image_extent& e) {
  const std::size_t block = block_of(form);
  return (e.channels + block - 1) / block * block;
}

/// The numbers of one run's channels, ready to be combined with its values.
template <class V>
[[nodiscard]] inline V of_channel(const float* numbers, const channel_run& r) {
  if constexpr (std::is_same_v<V, float>) {
    return numbers[r.channel];
  } else {
    return load<V>(numbers + r.channel);
  }
}

/// Calls body(V{}, T{}): T is the type of the layout's values, V what a loop over its runs takes at a time - a vector of the
/// block's channels, or a float where a run has one channel, whose loop the compiler vectorises.
template <class Body>
inline void with_lanes(layout form, Body body) {
  switch (form) {
    case layout::plain:
      return body(float{}, float{});
    case layout::plain_bf16:
      return body(float{}, bfloat16{});
    case layout::c8:
      return body(eight{}, float{});
    case layout::c16:
      return body(sixteen{}, float{});
    case layout::c16_bf16:
    case layout::pixels_bf16:
      return body(sixteen{}, bfloat16{});
  }
}

/// Sum over a run, by channel: term.template operator()<W>(place) gives the summands at a place, W
/// being float or a vector. Four sums at a time: a single one would wait for its addition before.
template <class V, class Term>
[[nodiscard]] inline V sum_over(const channel_run& r, Term term) {
  constexpr bool one_channel = std::is_same_v<V, float>;
  using W = std::conditional_t<one_channel, eight, V>;
  W sum[4] = {};
  std::size_t i = r.at;
  const std::size_t end = r.end, step = r.template step_for<W>();
  for (; i + 4 * step <= end; i += 4 * step) {
    for (std::size_t k = 0; k < 4; ++k) sum[k] += term.template operator()<W>(i + k * step);
  }
  for (; i + step <= end; i += step) sum[0] += term.template operator()<W>(i);
  const W all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  if constexpr (one_channel) {
    float rest = 0;
    for (std::size_t k = 0; k < 8; ++k) rest += all[k];
    for (; i < end; ++i) rest += term.template operator()<float>(i);
    return rest;
  } else {
    return all;
  }
}

/// into[channel] += the numbers of a run's channels.
template <class V>
inline void add_to_channels(double* into, const channel_run& r, V numbers) {
  float each[step_of<V>];
  store(each, numbers);
  for (std::size_t k = 0; k < step_of<V>; ++k) into[r.channel + k] += double{each[k]};
}

/// to[channel] = the sum over all pixels of values with `channels` of them side by side, whole blocks.
inline void sum_pixels(const bfloat16* values, std::size_t pixels, std::size_t channels,
                       float* to) {
  std::vector<double> sum(channels);
  each_run(layout::pixels_bf16, {1, channels, pixels}, [&](const channel_run& r) {
    add_to_channels(sum.data(), r, sum_over<sixteen>(r, [&]<class W>(std::size_t i) {
                      return load<W>(values + i);
                    }));
  });
  for (std::size_t k = 0; k < channels; ++k) to[k] = static_cast<float>(sum[k]);
}

}  // namespace poseidon::cpu
