// models/net/hyperbolic_tangent.hpp - tanh with the same bits on every machine; that of the C library changes with its version.
#pragma once
#include <bit>
#include <cstdint>

namespace poseidon {

/// tanh x, within 1.4 units in the last place; -0 for -0, and NaN for NaN. Without a branch or a call, so that a compiler makes vectors of
/// a loop over it. Each operation is rounded by itself: a file that calls it is compiled with -ffp-contract=off.
/// Source   Polynomials of ours, least relative error in float32: tests/cpu/hyperbolic_tangent_test.cpp.
[[nodiscard]] inline float hyperbolic_tangent(float x) {
  const float a = x < 0 ? -x : x;

  // Near zero: a + a^3 q(a^2).
  const float z = a * a;
  float q = -0.00589515036f;
  q = q * z + 0.0207959637f;
  q = q * z - 0.0537838265f;
  q = q * z + 0.133319244f;
  q = q * z - 0.333332986f;
  const float near = a + a * z * q;

  // Else 1 - 2 / (e^2a + 1), where e^2a = 2^n e^r. Beyond 10 it is 1.
  constexpr float rounds = 12582912.0f;  // 1.5 * 2^23: adding it leaves no digits behind the point
  constexpr float per_log = 1.44269504f, log_high = 0.693145752f, log_low = 1.42860677e-06f;
  const float twice = 2 * (a < 10 ? a : 10.0f);
  const float n = (twice * per_log + rounds) - rounds;
  const float r = (twice - n * log_high) - n * log_low;
  float p = 0.00138144649f;
  p = p * r + 0.00836878084f;
  p = p * r + 0.0416683927f;
  p = p * r + 0.166665196f;
  p = p * r + 0.49999994f;
  const auto power = std::bit_cast<float>((static_cast<std::int32_t>(n) + 127) << 23);
  const float far = 1 - 2 / ((p * r * r + r + 1) * power + 1);

  const float y = x != x ? x : a < 0.6f ? near : far;
  constexpr std::uint32_t sign = 0x80000000u;
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(y) & ~sign) |
                              (std::bit_cast<std::uint32_t>(x) & sign));
}

}  // namespace poseidon
