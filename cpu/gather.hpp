// cpu/gather.hpp - the one inner loop of sparse convolution: add scaled rows, picked by offset.
#pragma once
#include <cstddef>
#include <cstdint>

namespace poseidon::cpu {

/// One term of a sparse sum: `scale` times the rows that start at `offset` floats.
struct sparse_term {
  std::int32_t offset;
  float scale;
};

/// Where rows lie: `rows` rows of `length` floats, the next one `step` floats on.
struct row_block {
  std::size_t rows, length;
  std::size_t into_step, from_step;
};

/// into[r][i] += sum over terms of scale * from[offset + r][i], the terms in their order.
///
/// Writes   whole groups of eight: up to 7 floats behind each row of `into` are added to as well.
/// Cost     one load and one fused multiply-add per vector and term; `into` stays in registers.
/// Both versions
///          give the same bits, because every value is a chain of its own.
using gather_function = void (*)(const row_block& b, const sparse_term* terms, std::size_t count,
                                 const float* from, float* into);
void gather_rows_avx2(const row_block& b, const sparse_term* terms, std::size_t count,
                      const float* from, float* into);
void gather_rows_avx512(const row_block& b, const sparse_term* terms, std::size_t count,
                        const float* from, float* into);

/// The best one for this processor (and for oneDNN's own limit on instruction sets).
[[nodiscard]] gather_function choose_gather();

}  // namespace poseidon::cpu
