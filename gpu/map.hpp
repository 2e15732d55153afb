// gpu/map.hpp
//
// Launches over values of either type (gpu/values.hpp). What a kernel computes is a lambda from floats to floats; here
// it is fed from memory 16 bytes at a time (gpu/packs.hpp).
//
//   map(s, n, y, f, x...)            y[i] = f(i, x[i]...) for i in [0, n)
//   map_to_two(s, n, y, z, f, x...)  f gives two_floats, the second for z, or for nobody where z is null
//   sum_columns<S>(s, rows, columns, scratch, f, store, x...)
//       store(column, sum over the rows of f(i, x[i]...)), where i = row * columns + column and f gives an S that has
//       `first + second` and S{} as zero; always in the same order. `scratch` has column_scratch_bytes<S>().
//   sum_and_change_columns<S>(..., y, f, store, x...)  the same, and f gives changed<S>, whose value goes to y[i]
//
// All values of one call are of one type; y and z may be the memory of an x.
// Errors   gpu::error (misused): values of different types; and as for_each().
#pragma once
#include "gpu/launch.hpp"
#include "gpu/packs.hpp"

#include <utility>

namespace poseidon::gpu {

struct two_floats {
  float first, second;
};
template <class S>
struct changed {
  S sum;
  float value;
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

template <class T, class F, std::size_t N, bool Two>
struct mapped_pack {
  static constexpr index width = pack<T>::width;
  index n;
  bool whole;  ///< packs are aligned
  F f;
  T *y, *z;
  inputs<T, N> x;

  POSEIDON_DEVICE void operator()(index number) const {
    const index first = number * width;
    if (whole && n - first >= width) return at_once(first);
    for (index i = first; i < n && i - first < width; ++i) {
      T in[N];
      for (std::size_t k = 0; k < N; ++k) in[k] = x.at[k][i];
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
    pack<T> in[N], to_y, to_z;
    for (std::size_t k = 0; k < N; ++k) in[k] = *reinterpret_cast<const pack<T>*>(x.at[k] + first);
    for (index k = 0; k < width; ++k) {
      const auto out = call(f, first + k, k, in, std::make_index_sequence<N>{});
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
};

template <bool Two, class T, class F, class... X>
void run(stream& s, std::size_t n, T* y, T* z, const F& f, X... x) {
  const inputs<T, sizeof...(X)> in{{static_cast<const T*>(x)...}};
  const bool whole = are_aligned({y, z}) && in.are_aligned();
  for_each(s, (n + pack<T>::width - 1) / pack<T>::width,
           mapped_pack<T, F, sizeof...(X), Two>{to_index(n), whole, f, y, z, in});
}

/// Sums of W columns side by side.
template <class S, index W>
struct sums_of {
  S v[W];
};
template <class S, index W>
struct add_sums {
  POSEIDON_HOST_DEVICE sums_of<S, W> operator()(const sums_of<S, W>& a,
                                                const sums_of<S, W>& b) const {
    sums_of<S, W> c;
    for (index k = 0; k < W; ++k) c.v[k] = a.v[k] + b.v[k];
    return c;
  }
};
template <class S, index W, class Store>
struct store_sums {
  Store store;
  POSEIDON_DEVICE void operator()(index group, const sums_of<S, W>& sums) const {
    for (index k = 0; k < W; ++k) store(group * W + k, sums.v[k]);
  }
};

/// What a row adds to the sums of W columns.
template <class S, index W, class T, class F, std::size_t N, bool Changes>
struct row_of_sums {
  index columns;
  F f;
  T* y;
  inputs<T, N> x;

  POSEIDON_DEVICE sums_of<S, W> operator()(index row, index group) const {
    const index first = row * columns + group * W;
    pack<T> in[N], to_y;
    for (std::size_t k = 0; k < N; ++k) {
      if constexpr (W == 1)
        in[k].v[0] = x.at[k][first];
      else
        in[k] = *reinterpret_cast<const pack<T>*>(x.at[k] + first);
    }
    sums_of<S, W> sums;
    for (index k = 0; k < W; ++k) {
      const auto out = call(f, first + k, k, in, std::make_index_sequence<N>{});
      if constexpr (Changes) {
        sums.v[k] = out.sum;
        to_y.v[k] = round_to<T>(out.value);
      } else {
        sums.v[k] = out;
      }
    }
    if constexpr (Changes) {
      if constexpr (W == 1)
        y[first] = to_y.v[0];
      else
        *reinterpret_cast<pack<T>*>(y + first) = to_y;
    }
    return sums;
  }
};

template <class S, index W, bool Changes, class T, class F, class Store, std::size_t N>
void sum_groups(stream& s, std::size_t rows, std::size_t columns, std::byte* scratch, T* y,
                const F& f, const Store& store, const inputs<T, N>& x) {
  reduce_columns<sums_of<S, W>>(s, rows, columns / W, sums_of<S, W>{},
                                row_of_sums<S, W, T, F, N, Changes>{to_index(columns), f, y, x},
                                add_sums<S, W>{}, store_sums<S, W, Store>{store}, scratch);
}

template <class S, bool Changes, class T, class F, class Store, class... X>
void sum(stream& s, std::size_t rows, std::size_t columns, std::byte* scratch, T* y, const F& f,
         const Store& store, X... x) {
  (void)to_index(rows * columns);
  const inputs<T, sizeof...(X)> in{{static_cast<const T*>(x)...}};
  constexpr index width = pack<T>::width;
  if (columns % width == 0 && are_aligned({y}) && in.are_aligned())
    sum_groups<S, width, Changes>(s, rows, columns, scratch, y, f, store, in);
  else
    sum_groups<S, 1, Changes>(s, rows, columns, scratch, y, f, store, in);
}

}  // namespace mapping

/// The same call for values of one type, `of` being some of them: run(T{}) with the T that it is.
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

template <class S>
[[nodiscard]] std::size_t column_scratch_bytes(std::size_t rows, std::size_t columns) {
  std::size_t most = 0;
  for (const std::size_t width :
       {std::size_t{1}, std::size_t{pack<float>::width}, std::size_t{pack<bfloat16>::width}})
    most = std::max(most, column_parts(rows, columns / width) * columns * sizeof(S));
  return most;
}

template <class S, class F, class Store, class X, class... More>
void sum_columns(stream& s, std::size_t rows, std::size_t columns, std::byte* scratch, const F& f,
                 const Store& store, const X& x, const More&... more) {
  with_type_of(x, [&](auto one) {
    using T = decltype(one);
    mapping::sum<S, false, T>(s, rows, columns, scratch, nullptr, f, store,
                              static_cast<const T*>(const_values(x)),
                              static_cast<const T*>(const_values(more))...);
  });
}

template <class S, class F, class Store, class... X>
void sum_and_change_columns(stream& s, std::size_t rows, std::size_t columns, std::byte* scratch,
                            values y, const F& f, const Store& store, const X&... x) {
  with_type_of(y, [&](auto one) {
    using T = decltype(one);
    mapping::sum<S, true, T>(s, rows, columns, scratch, y, f, store,
                             static_cast<const T*>(const_values(x))...);
  });
}

}  // namespace poseidon::gpu
