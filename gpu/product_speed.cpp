#include "gpu/product_speed.hpp"

#include "gpu/kernels/elementwise.hpp"
#include "gpu/runtime/library.hpp"
#include "gpu/tuning.hpp"

namespace poseidon::gpu {
namespace {

/// u [rows, size] and v [rows, size] make a gradient [size, size].
double product_ms(int device, std::size_t rows, std::size_t size) {
  constexpr int repetitions = 3;
  stream on(device, stream_use::copy_out);
  library_options exact;
  exact.precision = math::fp32;
  exact.deterministic = true;
  library products(on, exact);
  device_memory factors(device, rows * size * sizeof(float)),
      gradient(device, size * size * sizeof(float));
  fill(on, rows * size, 0.5f, factors.floats());
  gemm_shape g;
  g.transpose_a = true;
  g.m = g.n = g.lda = g.ldb = g.ldc = size;
  g.k = rows;
  return least_ms(on, repetitions,
                  [&] { products.gemm(g, factors.floats(), factors.floats(), gradient.floats()); });
}

}  // namespace

std::optional<double> time_products(int device) {
  if (product_ms(device, 8, 8) <= 0) return std::nullopt;
  constexpr std::size_t rows = 128, size = 1536;
  return 2e3 * rows * size * size / product_ms(device, rows, size);
}

}  // namespace poseidon::gpu
