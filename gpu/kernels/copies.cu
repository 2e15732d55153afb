#include "gpu/kernels/copies.hpp"
#include "gpu/runtime/divisor.hpp"
#include "gpu/runtime/map.hpp"

namespace poseidon::gpu {

namespace {

/// Source and target may be of different types.
template <class From, class To>
void turn_values(stream& s, std::size_t outer, std::size_t rows, std::size_t columns,
                 const From* from, To* to) {
  const divisor row_count(to_index(rows)), column_count(to_index(columns)),
      size(to_index(rows * columns));
  for_each(s, outer * rows * columns, [=] POSEIDON_DEVICE(index i) {
    const index q = row_count.quotient(i), row = i - q * row_count.by();
    const std::size_t first = std::size_t{size.quotient(i)} * size.by();
    const index column = column_count.remainder(q);
    to[i] = round_to<To>(to_float(from[first + std::size_t{row} * column_count.by() + column]));
  });
}

/// In whole words, for both types have whole bytes.
template <class Word>
void copy_words(stream& s, const run_copy& c, const Word* from, Word* to) {
  const divisor length(to_index(c.length));
  const std::size_t from_step = c.from_step, to_step = c.to_step;
  for_each(s, c.runs * c.length, [=] POSEIDON_DEVICE(index i) {
    const index run = length.quotient(i), k = i - run * length.by();
    to[run * to_step + k] = from[run * from_step + k];
  });
}

void check_types(const_values from, values to) {
  if (from.type() != to.type())
    throw error(error_kind::misused, 0, "values are copied to values of another type");
}

struct alignas(16) four_words {
  std::uint32_t v[4];
};

}  // namespace

void copy_values(stream& s, std::size_t n, const_values from, values to) {
  check_types(from, to);
  copy_within_device(s, to.at(), from.at(), n * width(to.type()));
}

void copy_runs(stream& s, const run_copy& c, const_values from, values to) {
  check_types(from, to);
  const std::size_t wide = sizeof(four_words) / width(to.type());  // values per access
  const bool whole = c.length % wide == 0 && c.from_step % wide == 0 && c.to_step % wide == 0 &&
                     are_aligned({from.at(), to.at()});
  if (whole)
    copy_words(s, {c.runs, c.length / wide, c.from_step / wide, c.to_step / wide},
               static_cast<const four_words*>(from.at()), static_cast<four_words*>(to.at()));
  else if (to.type() == value_type::float32)
    copy_words<float>(s, c, from, to);
  else
    copy_words<bfloat16>(s, c, from, to);
}

void turn(stream& s, std::size_t outer, std::size_t rows, std::size_t columns, const_values from,
          values to) {
  with_type_of(from, [&](auto one) {
    using From = decltype(one);
    with_type_of(to, [&](auto other) {
      using To = decltype(other);
      turn_values<From, To>(s, outer, rows, columns, from, to);
    });
  });
}

void repeat(stream& s, std::size_t times, std::size_t n, const float* from, float* to) {
  const index size = to_index(n);
  for_each(s, times * n, [=] POSEIDON_DEVICE(index i) { to[i] = from[i % size]; });
}

void tile(stream& s, std::size_t outer, std::size_t times, std::size_t n, const float* from,
          float* to) {
  const index size = to_index(n), group = to_index(times * n);
  for_each(s, outer * times * n,
           [=] POSEIDON_DEVICE(index i) { to[i] = from[i / group * size + i % size]; });
}

void sum_tiles(stream& s, std::size_t outer, std::size_t times, std::size_t n, const float* from,
               float* to) {
  const index size = to_index(n), tiles = to_index(times);
  for_each(s, outer * n, [=] POSEIDON_DEVICE(index i) {
    const std::size_t first = std::size_t{i / size} * tiles * size + i % size;
    float sum = 0;
    for (index t = 0; t < tiles; ++t) sum += from[first + std::size_t{t} * size];
    to[i] = sum;
  });
}

}  // namespace poseidon::gpu
