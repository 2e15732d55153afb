// gpu/runtime/values.hpp
//
// Values in device memory, of one of two types. Sums and learned values are float32; blobs between the layers of a net may
// be bfloat16, half the bytes: float32's exponent, and 8 bits of mantissa.
//
// Kernels compute in float32, whatever the type that they read and write; they convert with to_float() and round_to().
#pragma once
#include "gpu/runtime/error.hpp"
#include "models/annotations.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#endif

namespace poseidon::gpu {

enum class value_type : std::uint8_t { float32, bfloat16 };

/// Bytes of a value.
[[nodiscard]] constexpr std::size_t width(value_type t) {
  return t == value_type::float32 ? 4 : 2;
}

/// The upper half of a float32.
struct bfloat16 {
  std::uint16_t bits;
};

POSEIDON_HOST_DEVICE inline float to_float(float v) {
  return v;
}
POSEIDON_HOST_DEVICE inline float to_float(bfloat16 v) {
  return std::bit_cast<float>(std::uint32_t{v.bits} << 16);
}

/// The nearest T, of two equally near the even one. Values above the largest T become infinite; NaN stays NaN.
template <class T>
POSEIDON_HOST_DEVICE T round_to(float v);
template <>
POSEIDON_HOST_DEVICE inline float round_to<float>(float v) {
  return v;
}
template <>
POSEIDON_HOST_DEVICE inline bfloat16 round_to<bfloat16>(float v) {
#if defined(__CUDA_ARCH__)
  return {__bfloat16_as_ushort(__float2bfloat16_rn(v))};
#else
  const auto bits = std::bit_cast<std::uint32_t>(v);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {0x7fff};
  return {static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
#endif
}

/// A pointer to values of either type, or null. It converts to a pointer to one of the types.
/// Errors   gpu::error (misused) from a conversion to a pointer to the other type.
template <class Void, class Float, class Bf16>
class typed_values {
 public:
  typed_values() = default;
  typed_values(std::nullptr_t) {}
  typed_values(Float* at) : at_(at) {}
  typed_values(Bf16* at) : at_(at), type_(value_type::bfloat16) {}
  typed_values(Void* at, value_type type) : at_(at), type_(type) {}
  template <class V, class F, class H>
  typed_values(const typed_values<V, F, H>& v) : at_(v.at()), type_(v.type()) {}

  [[nodiscard]] Void* at() const { return at_; }
  [[nodiscard]] value_type type() const { return type_; }

  operator Float*() const { return static_cast<Float*>(as(value_type::float32)); }
  operator Bf16*() const { return static_cast<Bf16*>(as(value_type::bfloat16)); }

  /// The place n values further.
  [[nodiscard]] typed_values operator+(std::size_t n) const {
    using byte = std::conditional_t<std::is_const_v<Void>, const std::byte, std::byte>;
    return {static_cast<byte*>(at_) + n * width(type_), type_};
  }

  friend bool operator==(const typed_values& v, std::nullptr_t) { return v.at_ == nullptr; }
  friend bool operator==(const typed_values& a, const typed_values& b) { return a.at_ == b.at_; }

 private:
  [[nodiscard]] Void* as(value_type wanted) const {
    if (at_ != nullptr && type_ != wanted)
      throw error(error_kind::misused, 0, "values are taken for another type than they have");
    return at_;
  }

  Void* at_ = nullptr;
  value_type type_ = value_type::float32;
};

using values = typed_values<void, float, bfloat16>;
using const_values = typed_values<const void, const float, const bfloat16>;

}  // namespace poseidon::gpu
