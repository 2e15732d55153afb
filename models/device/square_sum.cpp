#include "models/device/square_sum.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace poseidon {

namespace {

constexpr std::size_t last = square_sum::bins - 1;
constexpr std::uint32_t mantissa_mask = 0x7fffff;

// So many squares below 2^48 fit 64 bits: the loop adds into short counters and empties them now and then.
constexpr std::size_t block = std::size_t{1} << 16;

}  // namespace

void square_sum::add(std::span<const float> values) {
  std::array<std::uint64_t, bins> even{}, odd{};  // two: neighbours often have the same exponent
  while (!values.empty()) {
    const auto now = values.first(std::min(values.size(), block));
    values = values.subspan(now.size());
    even.fill(0);
    odd.fill(0);
    for (std::size_t i = 0; i < now.size(); ++i) {
      const auto bits = std::bit_cast<std::uint32_t>(now[i]);
      const auto exponent = (bits >> 23) & 0xff;
      std::uint64_t m = bits & mantissa_mask;
      if (exponent == last) {
        bins_[last] += m == 0 ? wide{1} : wide{1} << 64;
        continue;
      }
      m |= std::uint64_t{exponent != 0} << 23;
      (i % 2 == 0 ? even : odd)[exponent] += m * m;
    }
    for (std::size_t b = 0; b < last; ++b) bins_[b] += wide{even[b]} + odd[b];
  }
}

void square_sum::add(const square_sum& other) {
  for (std::size_t b = 0; b < bins; ++b) bins_[b] += other.bins_[b];
}

double square_sum::value() const {
  if (bins_[last] >> 64 != 0) return std::numeric_limits<double>::quiet_NaN();
  if (bins_[last] != 0) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (std::size_t b = 0; b < last; ++b) {
    // Denormal numbers have the exponent of the smallest normal ones, and no leading bit.
    const int exponent = static_cast<int>(std::max<std::size_t>(b, 1)) - 127 - 23;
    sum += std::ldexp(static_cast<double>(bins_[b]), 2 * exponent);
  }
  return sum;
}

void square_sum::write(std::span<std::byte, bytes> to) const {
  for (std::size_t b = 0; b < bins; ++b)
    for (std::size_t i = 0; i < 16; ++i)
      to[b * 16 + i] = static_cast<std::byte>(static_cast<std::uint8_t>(bins_[b] >> (8 * i)));
}

square_sum square_sum::read(std::span<const std::byte, bytes> from) {
  square_sum sum;
  for (std::size_t b = 0; b < bins; ++b)
    for (std::size_t i = 0; i < 16; ++i)
      sum.bins_[b] |= wide{std::to_integer<std::uint8_t>(from[b * 16 + i])} << (8 * i);
  return sum;
}

}  // namespace poseidon
