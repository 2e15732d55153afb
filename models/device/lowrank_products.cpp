// The products of models/device/lowrank.hpp, each one pass over the matrix. Vectors lie along what is no sum, so each value is the same chain
// of products and sums, each rounded once, whatever the processor: with AVX2 the bits are those of any other way.
#include "models/device/lowrank.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace poseidon {

namespace {

/// Vectors of this many floats: one register with AVX2, two without.
constexpr std::size_t width = 8;
constexpr std::size_t columns_at_once = 256;  // of Q, by rank: they stay in the first cache
constexpr std::size_t rows_at_once = 8;  // hides how long a sum takes, and Q is read once for them

template <std::size_t N>
struct vector_of {
  using type [[gnu::vector_size(4 * N)]] = float;
};
template <std::size_t N>
using vector = typename vector_of<N>::type;

template <std::size_t N>
[[gnu::always_inline]] inline void load(const float* from, vector<N>& into) {
  std::memcpy(&into, from, sizeof into);
}
template <std::size_t N>
[[gnu::always_inline]] inline void store(const vector<N>& from, float* into) {
  std::memcpy(into, &from, sizeof from);
}

struct product {
  const lowrank_shape& shape;
  const float* a;
  const float* b;
  float* out;
};

// -- sums over columns or rows: vectors lie along the rank ----------------------------------------------

/// Rows of p: m q, over columns in their order.
template <std::size_t Rank, std::size_t Rows>
[[gnu::always_inline]] inline void rows_of_p(const float* m, std::size_t columns, const float* q,
                                             float* p) {
  std::array<vector<Rank>, Rows> sums{};
  for (std::size_t j = 0; j < columns; ++j) {
    vector<Rank> of_column;
    load<Rank>(q + j * Rank, of_column);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < Rows; ++i) sums[i] += m[i * columns + j] * of_column;
  }
  for (std::size_t i = 0; i < Rows; ++i) store<Rank>(sums[i], p + i * Rank);
}

/// q += mt p, of some rows in their order.
template <std::size_t Rank, std::size_t Rows>
[[gnu::always_inline]] inline void rows_into_q(const float* m, std::size_t columns, const float* p,
                                               float* q) {
  std::array<vector<Rank>, Rows> of_rows{};
  for (std::size_t i = 0; i < Rows; ++i) load<Rank>(p + i * Rank, of_rows[i]);
  for (std::size_t j = 0; j < columns; ++j) {
    vector<Rank> sum;
    load<Rank>(q + j * Rank, sum);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < Rows; ++i) sum += m[i * columns + j] * of_rows[i];
    store<Rank>(sum, q + j * Rank);
  }
}

template <std::size_t Rank>
[[gnu::always_inline]] inline void p_of_rank(const product& x) {
  const auto rows = x.shape.rows, columns = x.shape.columns;
  std::size_t i = 0;
  for (; i + rows_at_once <= rows; i += rows_at_once)
    rows_of_p<Rank, rows_at_once>(x.a + i * columns, columns, x.b, x.out + i * Rank);
  for (; i < rows; ++i) rows_of_p<Rank, 1>(x.a + i * columns, columns, x.b, x.out + i * Rank);
}

template <std::size_t Rank>
[[gnu::always_inline]] inline void q_of_rank(const product& x) {
  const auto rows = x.shape.rows, columns = x.shape.columns;
  std::size_t i = 0;
  for (; i + rows_at_once <= rows; i += rows_at_once)
    rows_into_q<Rank, rows_at_once>(x.a + i * columns, columns, x.b + i * Rank, x.out);
  for (; i < rows; ++i) rows_into_q<Rank, 1>(x.a + i * columns, columns, x.b + i * Rank, x.out);
}

/// Ranks that users cannot ask for, in the same order of operations.
void p_of_any_rank(const product& x) {
  const auto rank = x.shape.rank;
  for (std::size_t i = 0; i < x.shape.rows; ++i)
    for (std::size_t k = 0; k < rank; ++k) {
      float sum = 0;
      for (std::size_t j = 0; j < x.shape.columns; ++j)
        sum += x.a[i * x.shape.columns + j] * x.b[j * rank + k];
      x.out[i * rank + k] = sum;
    }
}
void q_of_any_rank(const product& x) {
  const auto rank = x.shape.rank;
  for (std::size_t i = 0; i < x.shape.rows; ++i)
    for (std::size_t j = 0; j < x.shape.columns; ++j)
      for (std::size_t k = 0; k < rank; ++k)
        x.out[j * rank + k] += x.a[i * x.shape.columns + j] * x.b[i * rank + k];
}

[[gnu::always_inline]] inline void p_of(const product& x) {
  x.shape.rank == 8 ? p_of_rank<8>(x) : x.shape.rank == 4 ? p_of_rank<4>(x) : p_of_any_rank(x);
}
[[gnu::always_inline]] inline void q_of(const product& x) {
  x.shape.rank == 8 ? q_of_rank<8>(x) : x.shape.rank == 4 ? q_of_rank<4>(x) : q_of_any_rank(x);
}

// -- p qt: vectors lie along the columns ----------------------------------------------------------------

/// Of one row, `count` columns; `q` is by rank, `stride` values each. What it makes replaces `out`, or is taken off it.
template <bool TakesOff, std::size_t Rank>
[[gnu::always_inline]] inline void row_of_gradient(const float* p, const float* q,
                                                   std::size_t stride, std::size_t count,
                                                   float* out) {
  std::array<float, Rank> of_row;
  std::copy_n(p, Rank, of_row.begin());
  std::size_t j = 0;
  for (; j + width <= count; j += width) {
    vector<width> of_columns, before;
    load<width>(q + j, of_columns);
    vector<width> sum = of_row[0] * of_columns;
#pragma GCC unroll 8
    for (std::size_t k = 1; k < Rank; ++k) {
      load<width>(q + k * stride + j, of_columns);
      sum += of_row[k] * of_columns;
    }
    if (TakesOff) {
      load<width>(out + j, before);
      sum = before - sum;
    }
    store<width>(sum, out + j);
  }
  for (; j < count; ++j) {
    float sum = of_row[0] * q[j];
    for (std::size_t k = 1; k < Rank; ++k) sum += of_row[k] * q[k * stride + j];
    out[j] = TakesOff ? out[j] - sum : sum;
  }
}

template <bool TakesOff, std::size_t Rank>
[[gnu::always_inline]] inline void gradient_of_rank(const product& x) {
  const auto rows = x.shape.rows, columns = x.shape.columns;
  for (std::size_t first = 0; first < rows; first += rows_at_once)
    for (std::size_t j = 0; j < columns; j += columns_at_once)
      for (auto i = first; i < std::min(first + rows_at_once, rows); ++i)
        row_of_gradient<TakesOff, Rank>(x.a + i * Rank, x.b + j, columns,
                                        std::min(columns_at_once, columns - j),
                                        x.out + i * columns + j);
}

template <bool TakesOff>
void gradient_of_any_rank(const product& x) {
  const auto rank = x.shape.rank, columns = x.shape.columns;
  for (std::size_t i = 0; i < x.shape.rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) {
      float sum = x.a[i * rank] * x.b[j];
      for (std::size_t k = 1; k < rank; ++k) sum += x.a[i * rank + k] * x.b[k * columns + j];
      auto& out = x.out[i * columns + j];
      out = TakesOff ? out - sum : sum;
    }
}

template <bool TakesOff>
[[gnu::always_inline]] inline void gradient_of(const product& x) {
  x.shape.rank == 8   ? gradient_of_rank<TakesOff, 8>(x)
  : x.shape.rank == 4 ? gradient_of_rank<TakesOff, 4>(x)
                      : gradient_of_any_rank<TakesOff>(x);
}

// -- which way ------------------------------------------------------------------------------------------

struct ways {
  void (*p)(const product&);
  void (*q)(const product&);
  void (*gradient)(const product&);
  void (*take_off)(const product&);
};

constexpr ways portable{p_of, q_of, gradient_of<false>, gradient_of<true>};

#if defined(__x86_64__)
[[gnu::target("avx2")]] void p_avx2(const product& x) {
  p_of(x);
}
[[gnu::target("avx2")]] void q_avx2(const product& x) {
  q_of(x);
}
[[gnu::target("avx2")]] void gradient_avx2(const product& x) {
  gradient_of<false>(x);
}
[[gnu::target("avx2")]] void take_off_avx2(const product& x) {
  gradient_of<true>(x);
}

const ways& of_this_processor() {
  static constexpr ways wide{p_avx2, q_avx2, gradient_avx2, take_off_avx2};
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  return has_avx2 ? wide : portable;
}
#else
const ways& of_this_processor() {
  return portable;
}
#endif

std::vector<float> by_rank_first(const lowrank_shape& s, std::span<const float> q) {
  std::vector<float> out(s.q_values());
  for (std::size_t j = 0; j < s.columns; ++j)
    for (std::size_t k = 0; k < s.rank; ++k) out[k * s.columns + j] = q[j * s.rank + k];
  return out;
}

}  // namespace

void lowrank_p(const lowrank_shape& shape, std::span<const float> m, std::span<const float> q,
               std::span<float> p) {
  of_this_processor().p({shape, m.data(), q.data(), p.data()});
}

void lowrank_q(const lowrank_shape& shape, std::span<const float> m, std::span<const float> p,
               std::span<float> q) {
  std::fill_n(q.begin(), shape.q_values(), 0.0f);
  of_this_processor().q({shape, m.data(), p.data(), q.data()});
}

void lowrank_gradient(const lowrank_shape& shape, std::span<const float> p,
                      std::span<const float> q, std::span<float> gradient) {
  const auto turned = by_rank_first(shape, q);
  of_this_processor().gradient({shape, p.data(), turned.data(), gradient.data()});
}

void lowrank_take_off(const lowrank_shape& shape, std::span<const float> p,
                      std::span<const float> q, std::span<float> m) {
  const auto turned = by_rank_first(shape, q);
  of_this_processor().take_off({shape, p.data(), turned.data(), m.data()});
}

}  // namespace poseidon
