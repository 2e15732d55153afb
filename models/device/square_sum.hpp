// models/device/square_sum.hpp - the sum of squares of many floats, exact, so that it does not depend on order or cut.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace poseidon {

/// A float is m * 2^e with an integer m below 2^24, so its square is a whole multiple of 2^2e below 2^48.
/// Squares of one exponent are summed as integers in one bin, without rounding: the sum over a
/// cluster's shards has the bits that a single shard would give.
class square_sum {
 public:
  static constexpr std::size_t bins = 256;  ///< by a float's biased exponent
  /// The format of messages: the bins in order, 128 bits each, low half first, little-endian.
  static constexpr std::size_t bytes = bins * 16;

  void add(std::span<const float> values);
  void add(const square_sum& other);

  /// Rounded once per bin. NaN if a NaN was added, else infinity if an infinity was.
  [[nodiscard]] double value() const;

  void write(std::span<std::byte, bytes> to) const;
  [[nodiscard]] static square_sum read(std::span<const std::byte, bytes> from);

 private:
  __extension__ using wide = unsigned __int128;
  std::array<wide, bins> bins_{};  // the last counts infinities, and NaNs from bit 64 on
};

}  // namespace poseidon
