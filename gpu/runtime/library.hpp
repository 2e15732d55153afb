// gpu/runtime/library.hpp
//
// The products of the vendor's libraries, in our words: matrix products and convolutions. gpu/cuda/ asks cuBLAS and
// cuDNN, gpu/simulated/ runs plain loops. All values float32, row-major; images NCHW with weights [out,in/group,h,w], or,
// where a convolution's shape says so, NHWC with weights [out,h,w,in/group], and all three of them bfloat16. Everything is enqueued to the stream that
// the library was made for.
#pragma once
#include "gpu/runtime/convolution_shape.hpp"
#include "gpu/runtime/runtime.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace poseidon::gpu {

/// In what products are computed. fp32 is strict: what IEEE single precision gives, in whatever order. tf32 rounds the
/// factors to 10 bits of mantissa; bf16 those of matrix products to 7, as it does those of convolutions of bfloat16, where
/// results are rounded as well, and of others as tf32 does. Sums are float32.
enum class math { fp32, tf32, bf16 };

/// See gpu/tuning.hpp.
class tuning;

struct library_options {
  math precision = math::tf32;
  /// Only ways of computing that give the same bits in every run.
  bool deterministic = false;
  /// What nets have inside, where their layers can.
  layout images = layout::nchw;
  /// Most scratch memory that one product may take.
  std::size_t workspace_bytes = std::size_t{512} << 20;
  /// What was found out about the device so far: convolutions take the fastest of several ways. Null: the way that
  /// heuristics like best.
  std::shared_ptr<tuning> autotune = nullptr;
};

/// C = alpha * op(A) * op(B) + beta * C for each of `batch`; A [m,k] or transposed [k,m], B [k,n] or [n,k], C [m,n].
struct gemm_shape {
  bool transpose_a = false, transpose_b = false;
  std::size_t m = 0, n = 0, k = 0;
  std::size_t lda = 0, ldb = 0, ldc = 0;  ///< values from row to row
  float alpha = 1, beta = 0;
  std::size_t batch = 1;
  std::size_t stride_a = 0, stride_b = 0,
              stride_c = 0;  ///< values from one to the next of the batch
};

/// For one stream; used by the thread that enqueues to it.
class library {
 public:
  library(stream& s, library_options options);
  ~library();
  library(const library&) = delete;
  library& operator=(const library&) = delete;

  [[nodiscard]] const library_options& options() const { return options_; }
  [[nodiscard]] stream& on() const { return stream_; }

  void gemm(const gemm_shape& g, const float* a, const float* b, float* c);

  struct state;
  [[nodiscard]] state& get() const { return *state_; }

 private:
  stream& stream_;
  library_options options_;
  std::unique_ptr<state> state_;
};

/// One of the three products of a convolution.
enum class convolution_direction { forward, data_gradient, weight_gradient };

struct convolution_directions {
  bool forward = true, data_gradient = true, weight_gradient = true;
};

/// The ways in which one convolution is computed, chosen when it is made, for those directions that are wanted. The
/// library keeps what was chosen, so that equal convolutions cost nothing more.
/// Errors   gpu::error (unsupported), with the shape, where there is none within the library's options.
class convolution {
 public:
  convolution(library& with, const convolution_shape& shape, convolution_directions wanted = {});
  ~convolution();
  convolution(convolution&&) noexcept;
  convolution& operator=(convolution&&) noexcept;

  // All values are of the type that the shape's layout says.
  void forward(const_values x, const_values w, values y);            ///< overwrites y
  void data_gradient(const_values w, const_values dy, values dx);    ///< overwrites dx
  void weight_gradient(const_values x, const_values dy, values dw);  ///< overwrites dw

  struct state;

 private:
  std::unique_ptr<state> state_;
};

}  // namespace poseidon::gpu
