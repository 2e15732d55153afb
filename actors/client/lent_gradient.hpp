// actors/client/lent_gradient.hpp - one parameter's gradient in a program's memory, as long as it is lent.
#pragma once
#include "actors/parameters/gradient_source.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace poseidon {

/// The program calls lend() before it tells the caller gradients_lent, and not again before the version that the gradient
/// contributes to has come; so no two threads use this object at the same time. That holds for the shard, too, which reads step()
/// and base() when it has all gradients of a chunk, this one among them, and makes that version; and for the factor_broadcast, which
/// reads mean(), too.
class lent_gradient : public gradient_source {
 public:
  explicit lent_gradient(std::size_t values) : values_(values) {}
  /// Null: there is none in this clock. `step`: where shards make the optimizer's steps. `wire`: how it travels. `mean`: where the program
  /// wants it.
  void lend(const float* gradient, const std::optional<optimizer_step>& step = {},
            wire_format wire = wire_format::float32, float* mean = nullptr) {
    at_ = gradient;
    wire_ = wire;
    step_ = step;
    mean_ = mean;
  }
  /// Called as lend() is, before it. Null: there are none.
  void step_from(const float* base) { base_ = base; }
  /// Whether this worker sends what it lends: of what one worker gives, the others lend theirs, too, and give it when that one is lost. Set
  /// between two views.
  void sends(bool sends) { sends_ = sends; }
  [[nodiscard]] std::span<const float> total(std::uint64_t, std::size_t) const override {
    return at_ == nullptr || !sends_ ? std::span<const float>() : std::span(at_, values_);
  }
  [[nodiscard]] std::optional<optimizer_step> step() const override { return step_; }
  [[nodiscard]] wire_format wire() const override { return wire_; }
  [[nodiscard]] std::span<float> mean() const override {
    return mean_ == nullptr ? std::span<float>() : std::span(mean_, values_);
  }
  [[nodiscard]] std::span<const float> base() const override {
    return base_ == nullptr ? std::span<const float>() : std::span(base_, values_);
  }

 private:
  std::optional<optimizer_step> step_;
  const float* at_ = nullptr;
  wire_format wire_ = wire_format::float32;
  float* mean_ = nullptr;
  const float* base_ = nullptr;
  bool sends_ = true;
  std::size_t values_;
};

}  // namespace poseidon
