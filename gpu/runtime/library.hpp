// gpu/runtime/library.hpp
//
// Our interface to the products of the vendor's libraries: matrix products and convolutions. gpu/cuda/ calls cuBLAS and
// cuDNN, gpu/simulated/ runs plain loops. All values are float32, row-major; images NCHW with weights
// [out,in/group,h,w]. A convolution's shape may say NHWC with weights [out,h,w,in/group], and bfloat16 for images,
// weights and results. All work is enqueued to the stream that the library was made for.
#pragma once
#include "gpu/runtime/convolution_shape.hpp"
#include "gpu/runtime/runtime.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace poseidon::gpu {

/// The precision of products. fp32 is IEEE single precision, with sums in any order. tf32 rounds the factors to 10 bits of
/// mantissa. bf16 rounds the factors of matrix products to 7 bits, and those of convolutions of bfloat16, whose results are
/// rounded as well; it rounds the factors of other convolutions as tf32 does. Sums are float32.
enum class math { fp32, tf32, bf16 };

/// See gpu/tuning.hpp.
class tuning;

struct library_options {
  math precision = math::tf32;
  /// Only ways of computing that give the same bits in every run.
  bool deterministic = false;
  /// The layout of images inside nets, where their layers have it.
  layout images = layout::nchw;
  /// Upper limit of the scratch memory for one product.
  std::size_t workspace_bytes = std::size_t{512} << 20;
  /// Measurements of the device: convolutions take the fastest of several ways. Null: they take the way that heuristics
  /// prefer.
  std::shared_ptr<tuning> autotune = nullptr;
};

/// C = alpha * op(A) * op(B) + beta * C for each of `batch`; A [m,k] or transposed [k,m], B [k,n] or [n,k], C [m,n].
struct gemm_shape {
  bool transpose_a = false, transpose_b = false;
  std::size_t m = 0, n = 0, k = 0;
  std::size_t lda = 0, ldb = 0, ldc = 0;  ///< values from row to row
  float alpha = 1, beta = 0;
  std::size_t batch = 1;
  /// Values from one matrix to the next of the batch.
  std::size_t stride_a = 0, stride_b = 0, stride_c = 0;
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

/// One convolution with a way to compute each wanted direction, chosen by the constructor. The library remembers the
/// choice for equal convolutions.
/// Errors   gpu::error (unsupported), with the shape, where the library's options leave no way.
class convolution {
 public:
  convolution(library& with, const convolution_shape& shape, convolution_directions wanted = {});
  ~convolution();
  convolution(convolution&&) noexcept;
  convolution& operator=(convolution&&) noexcept;

  // All values have the type of the shape's layout.
  void forward(const_values x, const_values w, values y);            ///< overwrites y
  void data_gradient(const_values w, const_values dy, values dx);    ///< overwrites dx
  void weight_gradient(const_values x, const_values dy, values dw);  ///< overwrites dw

  struct state;

 private:
  std::unique_ptr<state> state_;
};

}  // namespace poseidon::gpu
