// gpu/runtime/divisor.hpp - division by a number that is known before a kernel starts, as a product and a shift. Other
// divisions take a GPU about twenty instructions: too many for kernels that are limited by memory.
//
// Source   Granlund & Montgomery, "Division by invariant integers using multiplication", PLDI 1994, §4.
#pragma once
#include "gpu/runtime/launch.hpp"

#include <bit>

namespace poseidon::gpu {

class divisor {
 public:
  /// 0 counts as 1: an empty blob has no place to divide.
  explicit divisor(index by)
      : by_(by == 0 ? 1 : by),
        shift_(static_cast<index>(std::bit_width(by_ - 1))),
        factor_(static_cast<index>((((std::uint64_t{1} << shift_) - by_) << 32) / by_ + 1)) {}

  [[nodiscard]] POSEIDON_HOST_DEVICE index by() const { return by_; }
  [[nodiscard]] POSEIDON_HOST_DEVICE index quotient(index n) const {
    const std::uint64_t high = (std::uint64_t{n} * factor_) >> 32;
    return static_cast<index>((high + n) >> shift_);
  }
  [[nodiscard]] POSEIDON_HOST_DEVICE index remainder(index n) const {
    return n - quotient(n) * by_;
  }

 private:
  index by_, shift_, factor_;
};

}  // namespace poseidon::gpu
