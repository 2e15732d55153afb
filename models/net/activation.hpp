// models/net/activation.hpp
//
// The functions of Caffe's activation layers, y = f(x) with dx = dy * slope(x, y). The CPU loops over these function objects.
// gpu/kernels/elementwise.cu has the formulas again, in one switch: with the function objects nvcc no longer unrolls the
// loop over packs of bfloat16. Without protobuf: nvcc reads it.
#pragma once
#include "models/annotations.hpp"
#include "models/net/hyperbolic_tangent.hpp"

#include <cmath>

namespace poseidon {

struct net_layer;

/// One of the functions, with up to three numbers. What a, b and c stand for is said beside each kind.
struct activation {
  enum class kind {
    relu,         ///< x where x > 0, else a x
    absolute,     ///< |x|
    sigmoid,      ///< 1 / (1 + e^-x)
    tangent,      ///< tanh x
    elu,          ///< x where x > 0, else a (e^x - 1)
    soft_plus,    ///< log(1 + e^x)
    power,        ///< (c + b x)^a
    exponential,  ///< b e^(a x)
    logarithm,    ///< c log(b + a x)
    threshold,    ///< 1 where x > a, else 0
    clip,         ///< x, but never below a or above b
    swish         ///< x sigmoid(a x)
  };
  kind what = kind::relu;
  float a = 0, b = 0, c = 0;

  /// Does the slope need x? Else y is enough, and the layer can work in place.
  [[nodiscard]] bool needs_x() const;
};

/// Reads the options of an activation layer.
/// Errors   spec_error naming the layer, for numbers that the function does not take.
[[nodiscard]] activation resolve_activation(const net_layer& layer);

/// Where a layer works in place only y is left, so slope() must then do without x (Caffe's own rule about which layers may
/// be in place).
namespace activations {

struct relu {
  float below;
  [[nodiscard]] bool needs_x() const { return below < 0; }  // else y > 0 says the same as x > 0
  [[nodiscard]] POSEIDON_HOST_DEVICE float value(float x) const { return x > 0 ? x : below * x; }
  [[nodiscard]] POSEIDON_HOST_DEVICE float slope(float x, float y) const {
    return (below < 0 ? x : y) > 0 ? 1.0f : below;
  }
};

struct absolute {
  [[nodiscard]] bool needs_x() const { return true; }
  [[nodiscard]] POSEIDON_HOST_DEVICE float value(float x) const { return std::fabs(x); }
  [[nodiscard]] POSEIDON_HOST_DEVICE float slope(float x, float) const {
    return x > 0 ? 1.0f : x < 0 ? -1.0f : 0.0f;
  }
};

struct sigmoid {
  [[nodiscard]] bool needs_x() const { return false; }
  [[nodiscard]] float value(float x) const { return 0.5f * hyperbolic_tangent(0.5f * x) + 0.5f; }
  [[nodiscard]] POSEIDON_HOST_DEVICE float slope(float, float y) const { return y * (1 - y); }
};

struct tangent {
  [[nodiscard]] bool needs_x() const { return false; }
  [[nodiscard]] float value(float x) const { return hyperbolic_tangent(x); }
  [[nodiscard]] POSEIDON_HOST_DEVICE float slope(float, float y) const { return 1 - y * y; }
};

struct elu {
  float alpha;
  [[nodiscard]] bool needs_x() const { return true; }
  [[nodiscard]] POSEIDON_HOST_DEVICE float value(float x) const {
    return x > 0 ? x : alpha * (std::exp(x) - 1);
  }
  [[nodiscard]] POSEIDON_HOST_DEVICE float slope(float x, float y) const {
    return x > 0 ? 1 : alpha + y;
  }
};

/// Without overflow for large x.
struct soft_plus {
  [[nodiscard]] bool needs_x() const { return true; }
  [[nodiscard]] POSEIDON_HOST_DEVICE float value(float x) const {
    return x > 0 ? x + std::log(1 + std::exp(-x)) : std::log(1 + std::exp(x));
  }
  [[nodiscard]] POSEIDON_HOST_DEVICE float slope(float x, float) const {
    const float e = std::exp(50.0f < x ? 50.0f : x);
    return e / (e + 1);
  }
};

struct power {
  float exponent, scale, shift;
  [[nodiscard]] bool needs_x() const { return true; }
  [[nodiscard]] POSEIDON_HOST_DEVICE float value(float x) const {
    const float base = shift + scale * x;
    return exponent == 1 ? base : exponent == 0 ? 1.0f : std::pow(base, exponent);
  }
  [[nodiscard]] POSEIDON_HOST_DEVICE float slope(float x, float) const {
    if (exponent == 0 || scale == 0) return 0;
    if (exponent == 1) return scale;
    return exponent * scale * std::pow(shift + scale * x, exponent - 1);
  }
};

struct exponential {
  float inner, outer;
  [[nodiscard]] bool needs_x() const { return false; }
  [[nodiscard]] POSEIDON_HOST_DEVICE float value(float x) const {
    return outer * std::exp(inner * x);
  }
  [[nodiscard]] POSEIDON_HOST_DEVICE float slope(float, float y) const { return y * inner; }
};

struct logarithm {
  float scale, shift, per_log;
  [[nodiscard]] bool needs_x() const { return true; }
  [[nodiscard]] POSEIDON_HOST_DEVICE float value(float x) const {
    return std::log(scale * x + shift) * per_log;
  }
  [[nodiscard]] POSEIDON_HOST_DEVICE float slope(float x, float) const {
    return per_log * scale / (scale * x + shift);
  }
};

struct threshold {
  float limit;
  [[nodiscard]] bool needs_x() const { return false; }
  [[nodiscard]] POSEIDON_HOST_DEVICE float value(float x) const { return x > limit ? 1.0f : 0.0f; }
  [[nodiscard]] POSEIDON_HOST_DEVICE float slope(float, float) const { return 0; }
};

struct clip {
  float least, most;
  [[nodiscard]] bool needs_x() const { return true; }
  [[nodiscard]] POSEIDON_HOST_DEVICE float value(float x) const {
    return x < least ? least : x > most ? most : x;
  }
  [[nodiscard]] POSEIDON_HOST_DEVICE float slope(float x, float) const {
    return x >= least && x <= most ? 1.0f : 0.0f;
  }
};

struct swish {
  float beta;
  [[nodiscard]] bool needs_x() const { return true; }
  [[nodiscard]] float value(float x) const { return x * sigmoid{}.value(beta * x); }
  [[nodiscard]] float slope(float x, float y) const {
    return beta * y + sigmoid{}.value(beta * x) * (1 - beta * y);
  }
};

}  // namespace activations

/// Calls use(function).
template <class Use>
POSEIDON_HOST_DEVICE inline auto with_function(const activation& f, const Use& use) {
  using kind = activation::kind;
  switch (f.what) {
    case kind::relu:
      return use(activations::relu{f.a});
    case kind::absolute:
      return use(activations::absolute{});
    case kind::sigmoid:
      return use(activations::sigmoid{});
    case kind::tangent:
      return use(activations::tangent{});
    case kind::elu:
      return use(activations::elu{f.a});
    case kind::soft_plus:
      return use(activations::soft_plus{});
    case kind::power:
      return use(activations::power{f.a, f.b, f.c});
    case kind::exponential:
      return use(activations::exponential{f.a, f.b});
    case kind::logarithm:
      return use(activations::logarithm{f.a, f.b, f.c});
    case kind::threshold:
      return use(activations::threshold{f.a});
    case kind::clip:
      return use(activations::clip{f.a, f.b});
    case kind::swish:
      break;
  }
  return use(activations::swish{f.a});
}

}  // namespace poseidon
