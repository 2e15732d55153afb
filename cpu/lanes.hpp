// cpu/lanes.hpp - several floats that are computed with as one value, and the way between them and memory of either type.
#pragma once
#include "cpu/bfloat16.hpp"

#include <cstddef>
#include <cstring>
#include <type_traits>

namespace poseidon::cpu {

/// Sixteen floats in two registers. A vector of 64 bytes would lie on the stack: this library is compiled for AVX2.
struct sixteen {
  eight low, high;

  friend sixteen operator+(sixteen a, sixteen b) { return {a.low + b.low, a.high + b.high}; }
  friend sixteen operator-(sixteen a, sixteen b) { return {a.low - b.low, a.high - b.high}; }
  friend sixteen operator*(sixteen a, sixteen b) { return {a.low * b.low, a.high * b.high}; }
  friend sixteen operator*(sixteen a, float b) { return {a.low * b, a.high * b}; }
  friend sixteen operator/(sixteen a, float b) { return {a.low / b, a.high / b}; }
  sixteen& operator+=(sixteen b) { return *this = *this + b; }
};

/// The floats of one V.
template <class V>
inline constexpr std::size_t step_of = sizeof(V) / sizeof(float);

/// V is float, eight or sixteen.
template <class V>
[[nodiscard]] inline V load(const float* at) {
  if constexpr (std::is_same_v<V, sixteen>) {
    return {load<eight>(at), load<eight>(at + 8)};
  } else {
    V v;
    std::memcpy(&v, at, sizeof v);
    return v;
  }
}
template <class V>
inline void store(float* to, V v) {
  if constexpr (std::is_same_v<V, sixteen>) {
    store<eight>(to, v.low);
    store<eight>(to + 8, v.high);
  } else {
    std::memcpy(to, &v, sizeof v);
  }
}

/// As above, with values of bfloat16 in memory.
template <class V>
[[nodiscard]] inline V load(const bfloat16* at) {
  if constexpr (std::is_same_v<V, float>)
    return *at;
  else if constexpr (std::is_same_v<V, eight>)
    return load_eight(at);
  else
    return {load_eight(at), load_eight(at + 8)};
}
template <class V>
inline void store(bfloat16* to, V v) {
  if constexpr (std::is_same_v<V, float>)
    *to = v;
  else if constexpr (std::is_same_v<V, eight>)
    store_eight(to, v);
  else
    store_eight(to, v.low), store_eight(to + 8, v.high);
}

/// By float: v > 0 ? a : b.
template <class V>
[[nodiscard]] inline V where_positive(V v, V a, V b) {
  if constexpr (std::is_same_v<V, sixteen>)
    return {v.low > 0 ? a.low : b.low, v.high > 0 ? a.high : b.high};
  else
    return v > 0 ? a : b;
}

/// Calls f.template operator()<V>(place) along a blob's values of type T, V at a time: float by float, a loop that the compiler
/// vectorises, and bfloat16, of which blobs hold whole blocks, by eight.
template <class T, class F>
inline void each_value(std::size_t size, F f) {
  using V = std::conditional_t<std::is_same_v<T, float>, float, eight>;
  for (std::size_t i = 0; i < size; i += step_of<V>) f.template operator()<V>(i);
}

}  // namespace poseidon::cpu
