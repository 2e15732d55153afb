// gpu/runtime/packs.hpp - 16 bytes of neighbouring values, which one thread of a kernel reads and writes in one access: a GPU
// has too few threads to use its memory's bandwidth with accesses of 2 or 4 bytes.
#pragma once
#include "gpu/runtime/launch.hpp"

#include <cstdint>
#include <initializer_list>

namespace poseidon::gpu {

template <class T>
struct alignas(16) pack {
  static constexpr index width = 16 / sizeof(T);
  T v[width];
};

/// Is each of these aligned as a pack, or null?
[[nodiscard]] inline bool are_aligned(std::initializer_list<const void*> all) {
  for (const void* p : all)
    if (reinterpret_cast<std::uintptr_t>(p) % 16 != 0) return false;
  return true;
}

/// N neighbours as floats.
template <index N>
struct floats {
  float v[N];
};

/// N values from `at` on, read as a pack unless N is 1.
template <index N, class T>
POSEIDON_DEVICE floats<N> load(const T* from) {
  floats<N> out;
  if constexpr (N == 1) {
    out.v[0] = to_float(*from);
  } else {
    constexpr index width = pack<T>::width;
    static_assert(N % width == 0);
    for (index first = 0; first < N; first += width) {
      const auto in = *reinterpret_cast<const pack<T>*>(from + first);
      for (index k = 0; k < width; ++k) out.v[first + k] = to_float(in.v[k]);
    }
  }
  return out;
}

/// Rounds N values and writes them.
template <index N, class T>
POSEIDON_DEVICE void store(T* to, const floats<N>& values) {
  if constexpr (N == 1) {
    *to = round_to<T>(values.v[0]);
  } else {
    constexpr index width = pack<T>::width;
    static_assert(N % width == 0);
    for (index first = 0; first < N; first += width) {
      pack<T> out;
      for (index k = 0; k < width; ++k) out.v[k] = round_to<T>(values.v[first + k]);
      *reinterpret_cast<pack<T>*>(to + first) = out;
    }
  }
}

}  // namespace poseidon::gpu
