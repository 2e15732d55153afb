// actors/client/lent_gradient.hpp - one parameter's gradient in a program's memory, as long as it is lent.
#pragma once
#include "actors/parameters/gradient_source.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace poseidon {

/// The program calls lend() before it tells the caller gradient_lent, and not again before the version that the gradient
/// contributes to has come; so no two threads use this object at the same time.
class lent_gradient : public gradient_source {
 public:
  explicit lent_gradient(std::size_t values) : values_(values) {}
  /// Null: there is none in this clock.
  void lend(const float* gradient) { at_ = gradient; }
  [[nodiscard]] std::span<const float> total(std::uint64_t, std::size_t) const override {
    return at_ == nullptr ? std::span<const float>() : std::span(at_, values_);
  }

 private:
  const float* at_ = nullptr;
  std::size_t values_;
};

}  // namespace poseidon
