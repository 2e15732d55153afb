// models/device/host_arithmetic.hpp - the arithmetic on parameters and gradients that a node does on its host, whatever device
// runs the kernels.
#pragma once
#include "models/device/factors.hpp"
#include "models/device/state_array.hpp"
#include "models/device/value_checksum.hpp"
#include "models/optimizer_rule.hpp"
#include "models/solver/solver_rule.hpp"

#include <memory>
#include <span>
#include <utility>

namespace poseidon {

class host_arithmetic {
 public:
  virtual ~host_arithmetic() = default;

  /// Called once in each thread that executes kernels or reconstructs gradients, before the first of them.
  virtual void enter_thread(int threads) const = 0;

  /// into[i] += x[i]. Any thread; the order of the calls is the order of the sum.
  virtual void add(std::span<float> into, std::span<const float> x) const = 0;
  /// to = factor * x.  Errors   std::invalid_argument: two sizes.
  virtual void scale(float factor, std::span<const float> x, std::span<float> to) const = 0;

  /// One solver update of one chunk, see solver_rule.hpp. Any thread. `made`: null, or `fresh` is added to it.
  virtual void update(const solver_rule& rule, const rule_step& step,
                      std::span<const float> gradient, std::span<const float> values,
                      std::span<float> fresh, std::span<const state_array> history,
                      value_checksum* made = nullptr) const = 0;

  /// One step of one chunk by a program's optimizer, of the gradient times `scale`: see optimizer_rule.hpp. Any thread.
  virtual void step(optimizer_rule rule, const optimizer_step& step, float scale,
                    std::span<const float> gradient, std::span<const float> values,
                    std::span<float> fresh, std::span<const state_array> history) const = 0;

  /// One clock of one chunk of a running statistic: fresh = momentum * values + change; they may be the same
  /// memory. Any thread.
  virtual void update_average(float momentum, std::span<const float> change,
                              std::span<const float> values, std::span<float> fresh) const = 0;

  /// The gradient of an inner product from its factors: see models/device/factors.hpp. Overwrites `weights` and `bias`
  /// (empty: there is none). Any thread that has entered; the bits depend on its number of threads.
  virtual void reconstruct_gradient(const factor_shape& shape, std::span<const float> u,
                                    std::span<const float> v, std::span<float> weights,
                                    std::span<float> bias) const = 0;
};

/// Another one's arithmetic, for a class that replaces a part of it.
class forwarding_arithmetic : public host_arithmetic {
 public:
  explicit forwarding_arithmetic(std::shared_ptr<const host_arithmetic> to) : to_(std::move(to)) {}

  void enter_thread(int threads) const override { to_->enter_thread(threads); }
  void add(std::span<float> into, std::span<const float> x) const override { to_->add(into, x); }
  void scale(float factor, std::span<const float> x, std::span<float> to) const override {
    to_->scale(factor, x, to);
  }
  void update(const solver_rule& rule, const rule_step& step, std::span<const float> gradient,
              std::span<const float> values, std::span<float> fresh,
              std::span<const state_array> history, value_checksum* made = nullptr) const override {
    to_->update(rule, step, gradient, values, fresh, history, made);
  }
  void step(optimizer_rule rule, const optimizer_step& step, float scale,
            std::span<const float> gradient, std::span<const float> values, std::span<float> fresh,
            std::span<const state_array> history) const override {
    to_->step(rule, step, scale, gradient, values, fresh, history);
  }
  void update_average(float momentum, std::span<const float> change, std::span<const float> values,
                      std::span<float> fresh) const override {
    to_->update_average(momentum, change, values, fresh);
  }
  void reconstruct_gradient(const factor_shape& shape, std::span<const float> u,
                            std::span<const float> v, std::span<float> weights,
                            std::span<float> bias) const override {
    to_->reconstruct_gradient(shape, u, v, weights, bias);
  }

 private:
  std::shared_ptr<const host_arithmetic> to_;
};

}  // namespace poseidon
