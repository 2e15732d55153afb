// gpu/kernels/by_channel.hpp
//
// Launches over blobs whose channels have numbers of their own (channels.hpp). A kernel is a lambda of a value's place, the
// numbers of its channel and the values at that place.
//
//   map_by_channel(s, c, q, y, f, x...)  y[i] = f(i, q of i's channel..., x[i]...)
//   map_to_two_by_channel(s, c, q, y, z, f, x...)
//       f returns two_floats; the second goes to z, unless z is null
//   sums: channel_sums.hpp
//
// Where channels lie side by side a thread stays with a pack of channels: it reads their numbers once and goes down the
// rows. Reading the numbers for each value would cost a multiprocessor three times the reads of the values.
//
// Errors   as map()
#pragma once
#include "gpu/kernels/channels.hpp"
#include "gpu/runtime/divisor.hpp"
#include "gpu/runtime/map.hpp"

#include <algorithm>
#include <utility>

namespace poseidon::gpu {

/// A float for each channel; `otherwise` for all where `at` is null.
struct channel_number {
  const float* at;
  float otherwise = 0;

  channel_number(const float* at, float otherwise = 0) : at(at), otherwise(otherwise) {}
};

/// M of them, as q above.
template <std::size_t M>
struct channel_numbers {
  channel_number of[M];
};
template <>
struct channel_numbers<0> {};

template <class... Number>
[[nodiscard]] channel_numbers<sizeof...(Number)> numbers(const Number&... n) {
  return {{channel_number(n)...}};
}
[[nodiscard]] inline channel_numbers<0> numbers() {
  return {};
}

namespace by_channel {

/// The M channel_numbers of W channels side by side.
template <std::size_t M, index W>
struct read_numbers {
  floats<W> of[M];
};
template <index W>
struct read_numbers<0, W> {};

template <index W, std::size_t M>
POSEIDON_DEVICE read_numbers<M, W> read(const channel_numbers<M>& q, index first) {
  read_numbers<M, W> out;
  if constexpr (M > 0) {
    for (std::size_t m = 0; m < M; ++m) {
      if (q.of[m].at != nullptr)
        out.of[m] = load<W>(q.of[m].at + first);
      else
        for (index k = 0; k < W; ++k) out.of[m].v[k] = q.of[m].otherwise;
    }
  }
  return out;
}

template <std::size_t M>
[[nodiscard]] bool are_aligned(const channel_numbers<M>& q) {
  if constexpr (M > 0)
    for (const channel_number& n : q.of)
      if (!gpu::are_aligned({n.at})) return false;
  return true;
}

/// f(i, the k-th numbers..., x...)
template <class F, std::size_t M, index W, std::size_t... I, class... X>
POSEIDON_DEVICE auto call(const F& f, index i, [[maybe_unused]] const read_numbers<M, W>& q,
                          [[maybe_unused]] index k, std::index_sequence<I...>, X... x) {
  return f(i, q.of[I].v[k]..., x...);
}

/// Channels of places, and places of (channel, number in the channel).
struct places {
  divisor plane, channels;

  explicit places(const channel_shape& c)
      : plane(to_index(c.plane)), channels(to_index(c.channels)) {}
  [[nodiscard]] POSEIDON_HOST_DEVICE index channel_of(index i) const {
    return channels.remainder(plane.quotient(i));
  }
  [[nodiscard]] POSEIDON_HOST_DEVICE index at(index channel, index k) const {
    return (plane.quotient(k) * channels.by() + channel) * plane.by() + plane.remainder(k);
  }
};

// -- for any order of channels -------------------------------------------------------------------------------

/// For map(): finds each value's channel.
template <class F, std::size_t M>
struct anywhere {
  places p;
  channel_numbers<M> q;
  F f;
  template <class... X>
  POSEIDON_DEVICE auto operator()(index i, X... x) const {
    return call(f, i, read<1>(q, p.channel_of(i)), 0, std::make_index_sequence<M>{}, x...);
  }
};

// -- for channels side by side, in whole packs -----------------------------------------------------------

template <class F, std::size_t M, index W>
struct with_numbers {
  const F& f;
  const read_numbers<M, W>& q;
  index k;
  template <class... X>
  POSEIDON_DEVICE auto operator()(index i, X... x) const {
    return call(f, i, q, k, std::make_index_sequence<M>{}, x...);
  }
};

/// A thread's rows are `step` apart; it reads two of them before it writes.
template <class T, class F, std::size_t M, std::size_t N, bool Two>
struct mapped_rows {
  static constexpr index width = pack<T>::width;
  index rows, step;
  divisor groups;
  F f;
  T *y, *z;
  channel_numbers<M> q;
  mapping::inputs<T, N> x;

  POSEIDON_DEVICE void operator()(index thread) const {
    index row = groups.quotient(thread);
    const index first = (thread - row * groups.by()) * width, columns = groups.by() * width;
    const auto own = read<width>(q, first);
    while (rows - row > step) {
      const index i = row * columns + first, j = i + step * columns;
      pack<T> one[N], other[N];
      x.read(one, i);
      x.read(other, j);
      write(one, i, own);
      write(other, j, own);
      if (rows - row <= 2 * step) return;
      row += 2 * step;
    }
    pack<T> last[N];
    x.read(last, row * columns + first);
    write(last, row * columns + first, own);
  }

 private:
  POSEIDON_DEVICE void write(const pack<T> (&in)[N], index i,
                             const read_numbers<M, width>& own) const {
    mapping::write_packs<Two>(y, z, i, [&](index k) {
      return mapping::call(with_numbers<F, M, width>{f, own, k}, i + k, k, in,
                           std::make_index_sequence<N>{});
    });
  }
};

/// The distance between a thread's rows. It gives as many threads as a large GPU can run, if there are enough packs, and at
/// most 16 rows to each, so that no thread runs alone at the end.
[[nodiscard]] inline std::size_t step_of(std::size_t rows, std::size_t groups) {
  constexpr std::size_t room = std::size_t{1} << 17, most_rows = 16;
  const std::size_t each = std::clamp<std::size_t>(rows * groups / room, 1, most_rows);
  return (rows + each - 1) / each;
}

template <bool Two, class T, class F, std::size_t M, class... X>
void map(stream& s, const channel_shape& c, const channel_numbers<M>& q, T* y, T* z, const F& f,
         X... x) {
  constexpr index width = pack<T>::width;
  const mapping::inputs<T, sizeof...(X)> in{{x...}};
  if (c.plane != 1 || c.channels % width != 0 || !gpu::are_aligned({y, z}) || !in.are_aligned() ||
      !are_aligned(q))
    return mapping::run<Two, T>(s, c.values(), y, z, anywhere<F, M>{places(c), q, f}, x...);
  (void)to_index(c.values());
  const std::size_t groups = c.channels / width, step = step_of(c.outer, groups);
  for_each(s, step * groups,
           mapped_rows<T, F, M, sizeof...(X), Two>{to_index(c.outer), to_index(step),
                                                   divisor(to_index(groups)), f, y, z, q, in});
}

}  // namespace by_channel

template <class F, std::size_t M, class... X>
void map_by_channel(stream& s, const channel_shape& c, const channel_numbers<M>& q, values y,
                    const F& f, const X&... x) {
  with_type_of(y, [&](auto one) {
    using T = decltype(one);
    by_channel::map<false, T>(s, c, q, y, nullptr, f, static_cast<const T*>(const_values(x))...);
  });
}

template <class F, std::size_t M, class... X>
void map_to_two_by_channel(stream& s, const channel_shape& c, const channel_numbers<M>& q, values y,
                           values z, const F& f, const X&... x) {
  with_type_of(y, [&](auto one) {
    using T = decltype(one);
    by_channel::map<true, T>(s, c, q, y, z, f, static_cast<const T*>(const_values(x))...);
  });
}

}  // namespace poseidon::gpu
