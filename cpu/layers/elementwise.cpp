// cpu/layers/elementwise.cpp - layers that map each value by itself: y = f(x), dx = dy * f'.
#include "cpu/layer.hpp"

#include <cmath>

namespace poseidon::cpu {
namespace {

/// f says the value, slope its derivative from x and y. Where a layer works in place only y is left
/// of the two, so slope must then make do with y (Caffe's own rule about which layers may be in
/// place).
template <class Function>
class elementwise_kernel final : public kernel {
 public:
  elementwise_kernel(const layer_context& c, Function f)
      : f_(f),
        in_place_(c.in_place()),
        top_(&c.top(0)),
        x_(c.bottom(0), part::data, c.top(0).form),
        dx_(c.wants_diff(0) ? view(c.bottom(0), part::diff, c.top(0).form) : view()) {
    if (in_place_ && f.needs_x && c.wants_diff(0)) kept_x_ = buffer(c.top(0).stored());
  }

  void forward(const pass&) override {
    const float* x = x_.load();
    const std::size_t size = top_->stored();
    if (kept_x_.size() != 0) std::copy_n(x, size, kept_x_.data());
    float* y = top_->data;
    for (std::size_t i = 0; i < size; ++i) y[i] = f_.value(x[i]);
  }

  void backward(const pass&) override {
    if (!dx_.exists()) return;
    const float* x = kept_x_.size() != 0 ? kept_x_.data() : in_place_ ? top_->data : x_.load();
    const float* y = top_->data;
    const float* dy = top_->diff;
    float* dx = dx_.memory();
    const std::size_t size = top_->stored();
    for (std::size_t i = 0; i < size; ++i) dx[i] = dy[i] * f_.slope(x[i], y[i]);
    dx_.store();
  }

 private:
  Function f_;
  bool in_place_;
  cpu_blob* top_;
  view x_, dx_;
  buffer kept_x_;
};

struct abs_value {
  static constexpr bool needs_x = true;
  [[nodiscard]] float value(float x) const { return std::fabs(x); }
  [[nodiscard]] float slope(float x, float) const { return x > 0 ? 1.0f : x < 0 ? -1.0f : 0.0f; }
};

struct sigmoid {
  static constexpr bool needs_x = false;
  [[nodiscard]] float value(float x) const { return 0.5f * std::tanh(0.5f * x) + 0.5f; }
  [[nodiscard]] float slope(float, float y) const { return y * (1 - y); }
};

struct tangent {
  static constexpr bool needs_x = false;
  [[nodiscard]] float value(float x) const { return std::tanh(x); }
  [[nodiscard]] float slope(float, float y) const { return 1 - y * y; }
};

struct elu {
  static constexpr bool needs_x = true;
  float alpha;
  [[nodiscard]] float value(float x) const { return x > 0 ? x : alpha * (std::exp(x) - 1); }
  [[nodiscard]] float slope(float x, float y) const { return x > 0 ? 1 : alpha + y; }
};

/// log(1 + e^x), for large x without overflow.
struct soft_plus {
  static constexpr bool needs_x = true;
  [[nodiscard]] float value(float x) const {
    return x > 0 ? x + std::log(1 + std::exp(-x)) : std::log(1 + std::exp(x));
  }
  [[nodiscard]] float slope(float x, float) const {
    const float e = std::exp(std::min(x, 50.0f));
    return e / (e + 1);
  }
};

/// (shift + scale x)^power
struct power {
  static constexpr bool needs_x = true;
  float exponent, scale, shift;
  [[nodiscard]] float value(float x) const {
    const float base = shift + scale * x;
    return exponent == 1 ? base : exponent == 0 ? 1.0f : std::pow(base, exponent);
  }
  [[nodiscard]] float slope(float x, float) const {
    if (exponent == 0 || scale == 0) return 0;
    if (exponent == 1) return scale;
    return exponent * scale * std::pow(shift + scale * x, exponent - 1);
  }
};

/// base^(shift + scale x) = e^(inner x + offset)
struct exponential {
  static constexpr bool needs_x = false;
  float inner, outer;
  [[nodiscard]] float value(float x) const { return outer * std::exp(inner * x); }
  [[nodiscard]] float slope(float, float y) const { return y * inner; }
};

/// log_base(shift + scale x)
struct logarithm {
  static constexpr bool needs_x = true;
  float scale, shift, per_log;
  [[nodiscard]] float value(float x) const { return std::log(scale * x + shift) * per_log; }
  [[nodiscard]] float slope(float x, float) const { return per_log * scale / (scale * x + shift); }
};

struct threshold {
  static constexpr bool needs_x = false;
  float limit;
  [[nodiscard]] float value(float x) const { return x > limit ? 1.0f : 0.0f; }
  [[nodiscard]] float slope(float, float) const { return 0; }
};

/// x, but never below or above the limits.
struct clip {
  static constexpr bool needs_x = true;
  float least, most;
  [[nodiscard]] float value(float x) const { return x < least ? least : x > most ? most : x; }
  [[nodiscard]] float slope(float x, float) const { return x >= least && x <= most ? 1.0f : 0.0f; }
};

/// x sigmoid(beta x)
struct swish {
  static constexpr bool needs_x = true;
  float beta;
  [[nodiscard]] float value(float x) const { return x * sigmoid{}.value(beta * x); }
  [[nodiscard]] float slope(float x, float y) const {
    return beta * y + sigmoid{}.value(beta * x) * (1 - beta * y);
  }
};

template <class Function>
std::unique_ptr<kernel> make(const layer_context& c, Function f) {
  return std::make_unique<elementwise_kernel<Function>>(c, f);
}

exponential resolve_exp(const ::caffe::ExpParameter& p) {
  const float log_base = p.base() == -1 ? 1.0f : std::log(p.base());
  return {log_base * p.scale(), std::exp(log_base * p.shift())};
}

/// -1 stands for e.
void check_base(const layer_context& c, float base) {
  if (base == -1 || base > 0) return;
  c.refuse("base is " + std::to_string(base) + ", it must be above 0, or -1 for e.");
}

}  // namespace

std::unique_ptr<kernel> make_elementwise(const layer_context& c) {
  const std::string& type = c.layer.type;
  const auto& spec = c.layer.spec;
  if (type == "AbsVal") return make(c, abs_value{});
  if (type == "Sigmoid") return make(c, sigmoid{});
  if (type == "TanH") return make(c, tangent{});
  if (type == "ELU") return make(c, elu{spec.elu_param().alpha()});
  if (type == "BNLL") return make(c, soft_plus{});
  if (type == "Power") {
    const auto& p = spec.power_param();
    return make(c, power{p.power(), p.scale(), p.shift()});
  }
  if (type == "Exp") {
    check_base(c, spec.exp_param().base());
    return make(c, resolve_exp(spec.exp_param()));
  }
  if (type == "Log") {
    const auto& p = spec.log_param();
    check_base(c, p.base());
    return make(c,
                logarithm{p.scale(), p.shift(), p.base() == -1 ? 1.0f : 1.0f / std::log(p.base())});
  }
  if (type == "Clip") return make(c, clip{spec.clip_param().min(), spec.clip_param().max()});
  if (type == "Swish") return make(c, swish{spec.swish_param().beta()});
  if (type == "Threshold") return make(c, threshold{spec.threshold_param().threshold()});
  c.refuse("elementwise.cpp does not know it");
}

}  // namespace poseidon::cpu
