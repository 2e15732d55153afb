#include "actors/parameters/send_order.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

namespace poseidon {

namespace {

constexpr float most = std::numeric_limits<float>::max();

/// Several sums side by side, which a compiler adds in one vector instruction.
double squares(std::span<const float> values) {
  std::array<float, 16> lanes{};
  double sum = 0;
  constexpr std::size_t run = 4096;  // so few floats lose only a few digits in a float sum
  for (std::size_t begin = 0; begin < values.size(); begin += run) {
    const auto part = values.subspan(begin, std::min(run, values.size() - begin));
    const auto whole = part.size() - part.size() % lanes.size();
    lanes.fill(0);
    for (std::size_t i = 0; i < whole; i += lanes.size())
      for (std::size_t l = 0; l < lanes.size(); ++l) lanes[l] += part[i + l] * part[i + l];
    for (std::size_t i = whole; i < part.size(); ++i) lanes[0] += part[i] * part[i];
    sum = std::accumulate(lanes.begin(), lanes.end(), sum);
  }
  return sum;
}

}  // namespace

std::uint64_t magnitude_order(std::uint64_t version, float magnitude) {
  // The bits of non-negative floats are in the order of their values.
  const float bounded = magnitude >= 0 ? std::min(magnitude, most) : most;
  return version << 32 |
         (1 + std::bit_cast<std::uint32_t>(most) - std::bit_cast<std::uint32_t>(bounded + 0.0f));
}

float relative_magnitude(std::span<const float> change, std::span<const float> values) {
  const auto changed = squares(change);
  if (changed == 0) return 0;
  const auto ratio = static_cast<float>(std::sqrt(changed / squares(values)));
  return std::isfinite(ratio) ? ratio : most;
}

}  // namespace poseidon
