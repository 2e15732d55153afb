// gpu/simulated/library.cpp - gpu/runtime/library.hpp as plain loops in the stream's thread.
#include "gpu/runtime/library.hpp"

#include "gpu/runtime/launch_simulated.hpp"
#include "gpu/simulated/machine.hpp"
#include "gpu/simulated/product.hpp"

#include <algorithm>
#include <vector>

namespace poseidon::gpu {

struct library::state {};

library::library(stream& s, library_options options) : stream_(s), options_(options) {}
library::~library() = default;

void library::gemm(const gemm_shape& g, const float* a, const float* b, float* c) {
  auto& machine = simulated::the_machine();
  const double rate = machine.options().product_flop_s;
  const double ms = rate > 0 ? 2e3 * static_cast<double>(g.m * g.n * g.k * g.batch) / rate : 0;
  simulated::enqueue_kernel(stream_, [=, &machine, device = stream_.device()] {
    machine.spend(device, ms);
    std::vector<float> columns, sums(g.m * g.n);
    for (std::size_t i = 0; i < g.batch; ++i) {
      const float* pb = b + i * g.stride_b;
      std::size_t ldb = g.ldb;
      if (g.transpose_b) {  // as [k, n], so that the inner loop below reads what lies side by side
        columns.resize(g.k * g.n);
        for (std::size_t n = 0; n < g.n; ++n)
          for (std::size_t k = 0; k < g.k; ++k) columns[k * g.n + n] = pb[n * g.ldb + k];
        pb = columns.data();
        ldb = g.n;
      }
      const std::size_t row_a = g.transpose_a ? 1 : g.lda, column_a = g.transpose_a ? g.lda : 1;
      std::fill(sums.begin(), sums.end(), 0.0f);
      simulated::add_product(g.m, g.n, g.k, {a + i * g.stride_a, row_a, column_a}, pb, ldb,
                             sums.data(), g.n);
      for (std::size_t m = 0; m < g.m; ++m) {
        float* out = c + i * g.stride_c + m * g.ldc;
        for (std::size_t n = 0; n < g.n; ++n)
          out[n] = g.alpha * sums[m * g.n + n] + (g.beta == 0 ? 0.0f : g.beta * out[n]);
      }
    }
  });
}

}  // namespace poseidon::gpu
