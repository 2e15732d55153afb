// cpu/kernels/gather.hpp - the one inner loop of sparse convolution: add scaled rows, picked by offset.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

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

/// into[r][i] += sum over terms of scale * from[offset + r][i], the terms in their order, for one
/// block shape.
///
/// Writes   whole groups of eight: up to 7 floats behind each row of `into` may be added to as
/// well. Cost     one load and one fused multiply-add per vector and term; `into` stays in
/// registers. Vectors of
///          eight and of sixteen give the same bits, because every value is a chain of its own.
class gatherer {
 public:
  gatherer() = default;
  gatherer(const row_block& b, bool wide);
  void operator()(const sparse_term* terms, std::size_t count, const float* from,
                  float* into) const {
    for (const piece& p : pieces_) p.run(terms, count, from + p.from, into + p.into, p.steps);
  }

 private:
  friend struct gather_kernels;
  struct row_steps {
    std::size_t from, into;
    std::uint16_t last;  ///< lanes of the last vector of a row, when vectors are wide
  };
  /// What fits into the registers: some rows, or a part of one.
  struct piece {
    void (*run)(const sparse_term*, std::size_t, const float*, float*, const row_steps&);
    std::size_t from, into;
    row_steps steps;
  };
  std::vector<piece> pieces_;
};

/// Has this processor vectors of sixteen (and does oneDNN's own limit on instruction sets allow
/// them)?
[[nodiscard]] bool has_wide_vectors();

}  // namespace poseidon::cpu
