#include "cpu/matrix.hpp"

#include "cpu/dnnl_run.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace poseidon::cpu {

void multiply(std::size_t rows, std::size_t columns, std::size_t inner, const matrix& a,
              const matrix& b, float* c) {
  // Its kernels are compiled when they are first used.
  static thread_local const bool has_room = (require_room_for_code(), true);
  (void)has_room;
  const auto as = [](std::size_t v) { return static_cast<dnnl::memory::dim>(v); };
  const dnnl::status s = dnnl::sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', as(rows),
                                     as(columns), as(inner), 1.0f, a.values, as(a.row_length),
                                     b.values, as(b.row_length), 0.0f, c, as(columns));
  if (s == dnnl::status::out_of_memory) throw no_memory(0);
  if (s != dnnl::status::success) {
    throw std::runtime_error("matrix product " + std::to_string(rows) + "x" +
                             std::to_string(columns) + "x" + std::to_string(inner) +
                             " failed in oneDNN, status " + std::to_string(static_cast<int>(s)));
  }
}

void sum_rows(std::size_t rows, std::size_t columns, const float* x, float* into) {
  std::fill_n(into, columns, 0.0f);
  for (std::size_t n = 0; n < rows; ++n) {
    for (std::size_t i = 0; i < columns; ++i) into[i] += x[n * columns + i];
  }
}

}  // namespace poseidon::cpu
