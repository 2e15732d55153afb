// cpu/bf16_products.hpp
//
// The three products of a layer that is a matrix of weights, with a row of x and y for each sample or pixel: factors of bfloat16, sums of
// float32. Weights are rounded and packed when they have changed; gradients come in Caffe's order.
#pragma once
#include "cpu/packed_weights.hpp"

#include <optional>

namespace poseidon::cpu {

class bf16_products {
 public:
  /// Shapes   x, dx [rows, in]   y, dy [rows, out]   W, dW [out, in], or [in, out] where transposed
  struct sizes {
    std::size_t rows = 0, in = 0, out = 0;
    bool transposed = false;
    bool wide_results = false;  ///< y and dx are float32
  };
  bf16_products() = default;
  bf16_products(dnnl_run& run, const sizes& s, const parameter_reader& weights,
                const parameter_reader& bias)
      : run_(&run), sizes_(s), weights_(weights), bias_(bias) {}
  // Before the first pass: what is wanted of it. `relu`: the slope of one that is applied to y.
  void make_forward(std::optional<float> relu);
  void make_data();
  void make_weights();

  /// y = x W^T + b. Memory counts as floats also where it holds bfloat16.
  void forward(const float* x, float* y);
  /// dx = dy W
  void backward_data(const float* dy, float* dx);
  /// dW = dy^T x
  void backward_weights(const float* x, const float* dy, float* dw);

 private:
  dnnl_run* run_ = nullptr;
  sizes sizes_;
  parameter_reader weights_, bias_;
  dnnl_step forward_, data_, gradient_;
  packed_weights for_forward_, for_data_;
};

}  // namespace poseidon::cpu
