// tests/plain_arithmetic.hpp - sums and updates that can be done in one's head, and a device without layers that has them.
#pragma once
#include "models/device/device.hpp"

#include <memory>

namespace poseidon::test {

/// update(), step(): fresh = values - rate * scale * gradient; history counts the updates.
class plain_arithmetic : public host_arithmetic {
 public:
  void enter_thread(int) const override {}
  void add(std::span<float> into, std::span<const float> x) const override {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] += x[i];
  }
  void scale(float factor, std::span<const float> x, std::span<float> to) const override {
    for (std::size_t i = 0; i < x.size(); ++i) to[i] = factor * x[i];
  }
  void update(const solver_rule&, const rule_step& step, std::span<const float> gradient,
              std::span<const float> values, std::span<float> fresh,
              std::span<const state_array> history, value_checksum* made = nullptr) const override {
    for (std::size_t i = 0; i < values.size(); ++i) {
      fresh[i] = values[i] - step.rate * step.scale * gradient[i];
      history[0].after[i] = history[0].before[i] + 1;
    }
    if (made != nullptr) made->add(fresh);
  }
  void step(optimizer_rule, const optimizer_step& step, float scale,
            std::span<const float> gradient, std::span<const float> values, std::span<float> fresh,
            std::span<const state_array> history) const override {
    for (std::size_t i = 0; i < values.size(); ++i) {
      fresh[i] = values[i] - static_cast<float>(step.rate) * scale * gradient[i];
      history[0].after[i] = history[0].before[i] + 1;
    }
  }
  void update_average(float momentum, std::span<const float> change, std::span<const float> values,
                      std::span<float> fresh) const override {
    for (std::size_t i = 0; i < values.size(); ++i) fresh[i] = momentum * values[i] + change[i];
  }
  void reconstruct_gradient(const factor_shape& s, std::span<const float> u,
                            std::span<const float> v, std::span<float> weights,
                            std::span<float> bias) const override {
    for (std::size_t o = 0; o < s.outputs; ++o)
      for (std::size_t i = 0; i < s.inputs; ++i) {
        auto& sum = weights[s.transposed ? i * s.outputs + o : o * s.inputs + i] = 0;
        for (std::size_t r = 0; r < s.rows; ++r) sum += u[r * s.outputs + o] * v[r * s.inputs + i];
      }
    for (std::size_t o = 0; o < bias.size(); ++o) {
      bias[o] = 0;
      for (std::size_t r = 0; r < s.rows; ++r) bias[o] += u[r * s.outputs + o];
    }
  }
};

template <class Arithmetic = plain_arithmetic>
class device_with : public device {
 public:
  std::string describe() const override { return "plain"; }
  std::unique_ptr<replica> make_replica(const net&, std::span<const parameter_values* const>,
                                        replica_options) override {
    return nullptr;
  }
  bool supports(std::string_view) const override { return false; }
  std::shared_ptr<const host_arithmetic> arithmetic() const override { return arithmetic_; }

 private:
  std::shared_ptr<const host_arithmetic> arithmetic_ = std::make_shared<Arithmetic>();
};

}  // namespace poseidon::test
