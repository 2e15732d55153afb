// models/device/value_checksum.hpp
//
// By which two nodes compare values that each of them has computed: equal for equal bits in the same order. It is for rounding
// that differs and memory that is damaged, not for somebody who wants to deceive. Each step can be undone, so one value that
// differs always changes the sum; where several differ, it stays the same with a chance of one in 2^32.
//
// Of values that lie in the first cache it takes a fraction of the time in which they came from memory: an update adds what it has
// just written (host_arithmetic.hpp). CRC-32C of them afterwards takes half as long as the update itself.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace poseidon {

class value_checksum {
 public:
  /// Adds values that follow those before; in how many calls does not matter.
  void add(std::span<const float> values);
  /// Of all values so far, and of their number.
  [[nodiscard]] std::uint32_t value() const;

 private:
  static constexpr std::size_t lanes = 32;  // as many as keep four vectors of AVX2 busy
  void add_one(float value);

  std::array<std::uint32_t, lanes> sums_{};  // value i is part of sum i % lanes
  std::uint64_t count_ = 0;
};

}  // namespace poseidon
