// gpu/kernels/channel_sums.hpp
//
// Sums of a lambda over the places of each channel. The lambda is as in by_channel.hpp.
//
//   sum_by_channel<S>(s, c, q, scratch, f, store, x...)
//       store(channel, sum over its places of f(i, q..., x[i]...)) of an S that has `first + second` and S{} as zero;
//       always in the same order. `scratch` as channels.hpp says, of sum_scratch_bytes_of<S>(), or null.
//   sum_and_change_by_channel<S>(s, c, q, scratch, y, f, store, x...)
//       sums likewise; f returns changed<S>, whose value goes to y[i]. Only with scratch, and channels side by side.
//
// Errors   as map()
#pragma once
#include "gpu/kernels/by_channel.hpp"

namespace poseidon::gpu {

template <class S>
struct changed {
  S sum;
  float value;
};

namespace by_channel {

/// For reduce_rows(): f at (channel, number in the channel).
template <class S, class T, class F, std::size_t M, std::size_t N>
struct summand {
  places p;
  anywhere<F, M> f;
  mapping::inputs<T, N> x;
  POSEIDON_DEVICE S operator()(index channel, index k) const {
    const index i = p.at(channel, k);
    T in[N];
    x.read(in, i);
    return mapping::call(f, i, in, std::make_index_sequence<N>{});
  }
};
struct add {
  template <class S>
  POSEIDON_HOST_DEVICE S operator()(S a, S b) const {
    return a + b;
  }
};

/// Sums of W columns side by side.
template <class S, index W>
struct alignas(W == 1 ? alignof(S) : 16) sums_of {
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

/// For reduce_columns(): the terms of a row for the sums of W columns.
template <class S, index W, class T, class F, std::size_t M, std::size_t N, bool Changes>
struct summed_columns {
  index columns;
  F f;
  T* y;
  channel_numbers<M> q;
  mapping::inputs<T, N> x;

  struct of_group {
    const summed_columns& all;
    index first;
    read_numbers<M, W> own;

    POSEIDON_DEVICE sums_of<S, W> operator()(index row) const {
      const index at = row * all.columns + first;
      pack<T> in[N], to_y;
      if constexpr (W == 1)
        for (std::size_t n = 0; n < N; ++n) in[n].v[0] = all.x.at[n][at];
      else
        all.x.read(in, at);
      sums_of<S, W> sums;
      for (index k = 0; k < W; ++k) {
        const auto out = mapping::call(with_numbers<F, M, W>{all.f, own, k}, at + k, k, in,
                                       std::make_index_sequence<N>{});
        if constexpr (Changes) {
          sums.v[k] = out.sum;
          to_y.v[k] = round_to<T>(out.value);
        } else {
          sums.v[k] = out;
        }
      }
      if constexpr (Changes) {
        if constexpr (W == 1)
          all.y[at] = to_y.v[0];
        else
          *reinterpret_cast<pack<T>*>(all.y + at) = to_y;
      }
      return sums;
    }
  };
  POSEIDON_DEVICE of_group of(index group) const {
    return {*this, group * W, read<W>(q, group * W)};
  }
};

template <class S, index W, bool Changes, class T, class F, class Store, std::size_t M,
          std::size_t N>
void sum_groups(stream& s, const channel_shape& c, const channel_numbers<M>& q, std::byte* scratch,
                T* y, const F& f, const Store& store, const mapping::inputs<T, N>& x) {
  reduce_columns<sums_of<S, W>>(
      s, c.outer, c.channels / W, sums_of<S, W>{},
      summed_columns<S, W, T, F, M, N, Changes>{to_index(c.channels), f, y, q, x}, add_sums<S, W>{},
      store_sums<S, W, Store>{store}, scratch);
}

template <class S, bool Changes, class T, class F, class Store, std::size_t M, class... X>
void sum(stream& s, const channel_shape& c, const channel_numbers<M>& q, std::byte* scratch, T* y,
         const F& f, const Store& store, X... x) {
  (void)to_index(c.values());
  const mapping::inputs<T, sizeof...(X)> in{{x...}};
  constexpr index width = pack<T>::width;
  if (c.channels % width == 0 && gpu::are_aligned({y}) && in.are_aligned() && are_aligned(q))
    sum_groups<S, width, Changes>(s, c, q, scratch, y, f, store, in);
  else
    sum_groups<S, 1, Changes>(s, c, q, scratch, y, f, store, in);
}

}  // namespace by_channel

/// 0 where channels do not lie side by side.
template <class S>
[[nodiscard]] std::size_t sum_scratch_bytes_of(const channel_shape& c) {
  if (c.plane != 1) return 0;
  std::size_t most = 0;
  for (const std::size_t width :
       {std::size_t{1}, std::size_t{pack<float>::width}, std::size_t{pack<bfloat16>::width}})
    most = std::max(most, column_parts(c.outer, c.channels / width) * c.channels * sizeof(S));
  return most;
}

template <class S, class F, class Store, std::size_t M, class X, class... More>
void sum_by_channel(stream& s, const channel_shape& c, const channel_numbers<M>& q,
                    std::byte* scratch, const F& f, const Store& store, const X& x,
                    const More&... more) {
  with_type_of(x, [&](auto one) {
    using T = decltype(one);
    if (scratch != nullptr && c.plane == 1)
      return by_channel::sum<S, false, T>(s, c, q, scratch, nullptr, f, store,
                                          static_cast<const T*>(const_values(x)),
                                          static_cast<const T*>(const_values(more))...);
    constexpr std::size_t n = 1 + sizeof...(More);
    const mapping::inputs<T, n> in{
        {static_cast<const T*>(const_values(x)), static_cast<const T*>(const_values(more))...}};
    const by_channel::places p(c);
    reduce_rows<S>(s, c.channels, c.per_channel(), S{},
                   by_channel::summand<S, T, F, M, n>{p, {p, q, f}, in}, by_channel::add{}, store);
  });
}

template <class S, class F, class Store, std::size_t M, class... X>
void sum_and_change_by_channel(stream& s, const channel_shape& c, const channel_numbers<M>& q,
                               std::byte* scratch, values y, const F& f, const Store& store,
                               const X&... x) {
  with_type_of(y, [&](auto one) {
    using T = decltype(one);
    by_channel::sum<S, true, T>(s, c, q, scratch, y, f, store,
                                static_cast<const T*>(const_values(x))...);
  });
}

}  // namespace poseidon::gpu
