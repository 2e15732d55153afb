#include "cpu/optimizer_update.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace poseidon::cpu {
namespace {

struct moment {
  const float* before = nullptr;
  float* after = nullptr;
};

struct chunk {
  std::size_t size;
  const float* gradient;
  const float* values;
  float* fresh;
  moment first;   // momentum, first moment
  moment second;  // second moment; not SGD's
  float scale;
};

float as_float(double v) {
  return static_cast<float>(v);
}

void require_same_size(const char* what, std::size_t has, std::size_t needs) {
  if (has == needs) return;
  throw std::invalid_argument("optimizer step: " + std::string(what) + " has " +
                              std::to_string(has) + " values, the gradient has " +
                              std::to_string(needs));
}

/// Without weight decay PyTorch adds nothing, and with momentum 0 there is no buffer: -0 + 0 would be another zero.
template <bool Decays, bool HasMomentum, bool First, bool Nesterov>
void sgd(const chunk& c, const optimizer_step& step) {
  const float decay = as_float(step.weight_decay), minus_rate = as_float(-step.rate),
              momentum = as_float(step.momentum), share = as_float(1 - step.dampening);
#pragma GCC ivdep
  for (std::size_t i = 0; i < c.size; ++i) {
    const float w = c.values[i];
    float g = c.scale * c.gradient[i];
    if constexpr (Decays) g = std::fma(w, decay, g);
    if constexpr (HasMomentum) {
      const float buffer = First ? g : std::fma(g, share, c.first.before[i] * momentum);
      c.first.after[i] = buffer;
      g = Nesterov ? std::fma(buffer, momentum, g) : buffer;
    }
    c.fresh[i] = std::fma(g, minus_rate, w);
  }
}

template <bool Decays>
void sgd(const chunk& c, const optimizer_step& step) {
  if (step.momentum == 0) {
    if (c.first.before != c.first.after)
      std::copy(c.first.before, c.first.before + c.size, c.first.after);
    return sgd<Decays, false, false, false>(c, step);
  }
  const bool first = step.number == 1;
  if (step.nesterov)
    return first ? sgd<Decays, true, true, true>(c, step) : sgd<Decays, true, false, true>(c, step);
  return first ? sgd<Decays, true, true, false>(c, step) : sgd<Decays, true, false, false>(c, step);
}

enum class decay_kind { none, of_gradient, of_values };

template <decay_kind Decay, bool Lerp>
void adam(const chunk& c, const optimizer_step& step) {
  const auto t = static_cast<double>(step.number);
  const double correction = 1 - std::pow(step.momentum, t);
  const float decay = as_float(Decay == decay_kind::of_values ? 1 - step.rate * step.weight_decay
                                                              : step.weight_decay),
              beta1 = as_float(step.momentum), share1 = as_float(1 - step.momentum),
              beta2 = as_float(step.beta2), share2 = as_float(1 - step.beta2),
              root = as_float(std::sqrt(1 - std::pow(step.beta2, t))),
              epsilon = as_float(step.epsilon), minus_rate = as_float(-(step.rate / correction));
#pragma GCC ivdep
  for (std::size_t i = 0; i < c.size; ++i) {
    float w = c.values[i];
    float g = c.scale * c.gradient[i];
    if constexpr (Decay == decay_kind::of_gradient) g = std::fma(w, decay, g);
    if constexpr (Decay == decay_kind::of_values) w = w * decay;
    const float first = c.first.before[i];
    const float m = Lerp ? std::fma(g - first, share1, first) : std::fma(g, share1, first * beta1);
    const float v = std::fma(share2 * g, g, c.second.before[i] * beta2);
    c.first.after[i] = m;
    c.second.after[i] = v;
    const float divisor = std::sqrt(v) / root + epsilon;
    c.fresh[i] = w + (minus_rate * m) / divisor;
  }
}

template <decay_kind Decay>
void adam(const chunk& c, const optimizer_step& step) {
  step.lerp ? adam<Decay, true>(c, step) : adam<Decay, false>(c, step);
}

}  // namespace

void update(optimizer_rule rule, const optimizer_step& step, float scale,
            std::span<const float> gradient, std::span<const float> values, std::span<float> fresh,
            std::span<const state_array> history) {
  require_same_size("values", values.size(), gradient.size());
  require_same_size("fresh", fresh.size(), gradient.size());
  const auto slots = history_count(rule);
  if (slots == 0 || history.size() != slots)
    throw std::invalid_argument("optimizer step: " + std::string(name_of(rule)) + " keeps " +
                                std::to_string(slots) + " arrays, it was given " +
                                std::to_string(history.size()));
  for (const auto& h : history) {
    require_same_size("history", h.before.size(), gradient.size());
    require_same_size("history", h.after.size(), gradient.size());
  }
  const chunk c{
      .size = gradient.size(),
      .gradient = gradient.data(),
      .values = values.data(),
      .fresh = fresh.data(),
      .first = {history[0].before.data(), history[0].after.data()},
      .second = slots == 2 ? moment{history[1].before.data(), history[1].after.data()} : moment{},
      .scale = scale};
  const bool decays = step.weight_decay != 0;
  if (rule == optimizer_rule::sgd) return decays ? sgd<true>(c, step) : sgd<false>(c, step);
  if (rule == optimizer_rule::adamw) return adam<decay_kind::of_values>(c, step);
  decays ? adam<decay_kind::of_gradient>(c, step) : adam<decay_kind::none>(c, step);
}

}  // namespace poseidon::cpu
