// gpu/runtime/map.hpp
//
// Launches over values of either type (gpu/runtime/values.hpp). A kernel is a lambda from floats to floats; its threads read
// and write 16 bytes at a time (gpu/runtime/packs.hpp).
//
//   map(s, n, y, f, x...)            y[i] = f(i, x[i]...) for i in [0, n)
//   map_to_two(s, n, y, z, f, x...)  f returns two_floats; the second goes to z, unless z is null
//
// All values of one call are of one type; y and z may be the memory of an x.
// Errors   gpu::error (misused): values of different types; and as for_each().
#pragma once
#include "gpu/runtime/launch.hpp"
#include "gpu/runtime/packs.hpp"

#include <utility>

namespace poseidon::gpu {

struct two_floats {
  float first, second;
};

namespace mapping {

template <class T, std::size_t N>
struct inputs {
  const T* at[N];
  [[nodiscard]] bool are_aligned() const {
    for (const T* p : at)
      if (!gpu::are_aligned({p})) return false;
    return true;
  }
  POSEIDON_DEVICE void read(T (&in)[N], index i) const {
    for (std::size_t n = 0; n < N; ++n) in[n] = at[n][i];
  }
  POSEIDON_DEVICE void read(pack<T> (&in)[N], index i) const {
    for (std::size_t n = 0; n < N; ++n) in[n] = *reinterpret_cast<const pack<T>*>(at[n] + i);
  }
};

/// f(i, the values...)
template <class F, class T, std::size_t N, std::size_t... I>
POSEIDON_DEVICE auto call(const F& f, index i, const T (&x)[N], std::index_sequence<I...>) {
  return f(i, to_float(x[I])...);
}
/// f(first + k, the k-th values of the packs...)
template <class F, class T, std::size_t N, std::size_t... I>
POSEIDON_DEVICE auto call(const F& f, index i, index k, const pack<T> (&x)[N],
                          std::index_sequence<I...>) {
  return f(i, to_float(x[I].v[k])...);
}

/// Packs of the results of each(k) for the k-th value: a float for y, or two_floats, the second for z unless z is null.
template <bool Two, class T, class Each>
POSEIDON_DEVICE void write_packs(T* y, T* z, index first, const Each& each) {
  pack<T> to_y, to_z;
  for (index k = 0; k < pack<T>::width; ++k) {
    const auto out = each(k);
    if constexpr (Two) {
      to_y.v[k] = round_to<T>(out.first);
      to_z.v[k] = round_to<T>(out.second);
    } else {
      to_y.v[k] = round_to<T>(out);
    }
  }
  *reinterpret_cast<pack<T>*>(y + first) = to_y;
  if constexpr (Two) {
    if (z != nullptr) *reinterpret_cast<pack<T>*>(z + first) = to_z;
  }
}

template <class T, class F, std::size_t N, bool Two>
struct mapped_pack {
  static constexpr index width = pack<T>::width;
  index n;
  bool whole;  ///< all packs are aligned
  F f;
  T *y, *z;
  inputs<T, N> x;

  POSEIDON_DEVICE void operator()(index number) const {
    const index first = number * width;
    if (whole && n - first >= width) return at_once(first);
    for (index i = first; i < n && i - first < width; ++i) {
      T in[N];
      x.read(in, i);
      const auto out = call(f, i, in, std::make_index_sequence<N>{});
      if constexpr (Two) {
        y[i] = round_to<T>(out.first);
        if (z != nullptr) z[i] = round_to<T>(out.second);
      } else {
        y[i] = round_to<T>(out);
      }
    }
  }

 private:
  POSEIDON_DEVICE void at_once(index first) const {
    pack<T> in[N];
    x.read(in, first);
    write_packs<Two>(y, z, first, [&](index k) {
      return call(f, first + k, k, in, std::make_index_sequence<N>{});
    });
  }
};

template <bool Two, class T, class F, class... X>
void run(stream& s, std::size_t n, T* y, T* z, const F& f, X... x) {
  const inputs<T, sizeof...(X)> in{{static_cast<const T*>(x)...}};
  const bool whole = are_aligned({y, z}) && in.are_aligned();
  for_each(s, (n + pack<T>::width - 1) / pack<T>::width,
           mapped_pack<T, F, sizeof...(X), Two>{to_index(n), whole, f, y, z, in});
}

}  // namespace mapping

/// Calls run(T{}) for the type T of `of`.
template <class Run>
void with_type_of(const const_values& of, const Run& run) {
  if (of.type() == value_type::float32)
    run(float{});
  else
    run(bfloat16{});
}

template <class F, class... X>
void map(stream& s, std::size_t n, values y, const F& f, const X&... x) {
  with_type_of(y, [&](auto one) {
    using T = decltype(one);
    mapping::run<false, T>(s, n, y, nullptr, f, static_cast<const T*>(const_values(x))...);
  });
}

template <class F, class... X>
void map_to_two(stream& s, std::size_t n, values y, values z, const F& f, const X&... x) {
  with_type_of(y, [&](auto one) {
    using T = decltype(one);
    mapping::run<true, T>(s, n, y, z, f, static_cast<const T*>(const_values(x))...);
  });
}

}  // namespace poseidon::gpu
