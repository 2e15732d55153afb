// OpenCV's bilinear resize of bytes: pixel centres at one half, weights of 11 bits, sums in integers.
// Where both sides shrink to exactly one half it averages four pixels instead (its INTER_AREA).
// Source   behaviour of cv::resize, INTER_LINEAR, 8 bits (OpenCV 2.4 to 4.6 on x86).
#include "data/picture.hpp"

#include <algorithm>
#include <cmath>

namespace poseidon {
namespace {

constexpr int weight_bits = 11;
constexpr int one = 1 << weight_bits;

/// Where an output place reads: at `first` with weight[0] and at the next place with weight[1].
struct tap {
  std::int64_t first = 0;
  int weight[2] = {one, 0};
};

std::vector<tap> taps_of(std::int64_t from, std::int64_t to, bool clamped) {
  std::vector<tap> taps(static_cast<std::size_t>(to));
  const double scale = 1.0 / (static_cast<double>(to) / static_cast<double>(from));
  for (std::int64_t i = 0; i < to; ++i) {
    auto& t = taps[static_cast<std::size_t>(i)];
    auto at = static_cast<float>((static_cast<double>(i) + 0.5) * scale - 0.5);
    t.first = static_cast<std::int64_t>(std::floor(at));
    at -= static_cast<float>(t.first);
    if (clamped && t.first < 0) t.first = 0, at = 0;
    if (clamped && t.first >= from - 1) t.first = from - 1, at = 0;
    t.weight[0] = static_cast<int>(std::lrintf((1 - at) * one));
    t.weight[1] = static_cast<int>(std::lrintf(at * one));
  }
  return taps;
}

/// One row, stretched, times 2^11.
void stretch(const std::uint8_t* row, const std::vector<tap>& columns, std::int64_t channels,
             std::int64_t width, std::vector<int>& out) {
  std::size_t at = 0;
  for (const auto& t : columns) {
    const auto* left = row + t.first * channels;
    const auto* right = t.first + 1 < width ? left + channels : left;
    for (std::int64_t c = 0; c < channels; ++c)
      out[at++] = left[c] * t.weight[0] + right[c] * t.weight[1];
  }
}

picture halved(const picture& from) {
  auto to = empty_picture(from.channels, from.height / 2, from.width / 2);
  const auto step = from.channels, row = from.width * from.channels;
  auto* out = to.pixels.data();
  for (std::int64_t y = 0; y < to.height; ++y)
    for (std::int64_t x = 0; x < to.width; ++x)
      for (std::int64_t c = 0; c < step; ++c) {
        const auto* p = from.pixels.data() + 2 * y * row + 2 * x * step + c;
        *out++ = static_cast<std::uint8_t>((p[0] + p[step] + p[row] + p[row + step] + 2) >> 2);
      }
  return to;
}

}  // namespace

picture resize(const picture& from, std::int64_t height, std::int64_t width) {
  if (height == from.height && width == from.width) return from;
  if (height * 2 == from.height && width * 2 == from.width) return halved(from);
  auto to = empty_picture(from.channels, height, width);
  const auto columns = taps_of(from.width, width, true), rows = taps_of(from.height, height, false);
  const auto values = static_cast<std::size_t>(width * from.channels);
  std::vector<int> stretched[2] = {std::vector<int>(values), std::vector<int>(values)};
  std::int64_t held[2] = {-1, -1};  // which row each of them is
  const auto row_of = [&](std::int64_t y) -> const std::vector<int>& {
    y = std::clamp<std::int64_t>(y, 0, from.height - 1);
    const auto place = static_cast<std::size_t>(y % 2);
    if (held[place] != y) {
      stretch(from.pixels.data() + y * from.width * from.channels, columns, from.channels,
              from.width, stretched[place]);
      held[place] = y;
    }
    return stretched[place];
  };
  auto* out = to.pixels.data();
  for (const auto& t : rows) {
    const auto& upper = row_of(t.first);
    const auto& lower = row_of(t.first + 1);
    for (std::size_t i = 0; i < values; ++i)
      *out++ = static_cast<std::uint8_t>(
          (((t.weight[0] * (upper[i] >> 4)) >> 16) + ((t.weight[1] * (lower[i] >> 4)) >> 16) + 2) >>
          2);
  }
  return to;
}

}  // namespace poseidon
