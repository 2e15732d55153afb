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

/// Where rows lie: `rows` rows of `length` floats, `step` floats apart.
struct row_block {
  std::size_t rows, length;
  std::size_t into_step, from_step;
};

/// into[r][i] += sum over terms of scale * from[offset + r][i], the terms in their order.
///
/// Writes   whole groups of eight: up to 7 floats behind each row of `into` are added to as well.
/// Cost     one load and one fused multiply-add per eight values and term; `into` stays in
/// registers.
void gather_rows(const row_block& b, const sparse_term* terms, std::size_t count, const float* from,
                 float* into);

}  // namespace poseidon::cpu
