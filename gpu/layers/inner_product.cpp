// gpu/layers/inner_product.cpp - InnerProduct: y = x W^T + b as matrix products on Caffe's own layouts.
#include "gpu/kernels/channels.hpp"
#include "gpu/kernels/copies.hpp"
#include "gpu/layers/layers.hpp"

namespace poseidon::gpu {
namespace {

class inner_product_kernel final : public kernel {
 public:
  inner_product_kernel(const layer_context& c, std::size_t axis)
      : compute_(c.compute()),
        libraries_(c.state.libraries),
        rows_(static_cast<std::size_t>(count(c.bottom_shape(0), 0, axis))),
        in_(static_cast<std::size_t>(count(c.bottom_shape(0), axis, c.bottom_shape(0).size()))),
        out_(c.layer.spec.inner_product_param().num_output()),
        transposed_(c.layer.spec.inner_product_param().transpose()),
        bottom_(c.bottom(0)),
        top_(c.top(0)),
        backward_wanted_(c.wants_diff(0)),
        weights_(c.parameter(0)),
        weight_gradient_(c.gradient(0)) {
    if (!c.layer.spec.inner_product_param().bias_term()) return;
    bias_ = c.parameter(1);
    bias_gradient_ = c.gradient(1);
  }

  void forward(const pass&) override {
    // The bias is laid under the product, which adds to it.
    if (bias_ != nullptr) repeat(compute_, rows_, out_, bias_, top_.data);
    gemm_shape g = product(rows_, out_, in_);
    g.transpose_b = !transposed_;
    g.lda = in_;
    g.ldb = transposed_ ? out_ : in_;
    g.beta = bias_ != nullptr ? 1 : 0;
    libraries_.gemm(g, bottom_.data, weights_, top_.data);
  }

  void backward(const pass&) override {
    if (weight_gradient_.wanted()) {
      // dW = dy^T x, or its transpose.
      gemm_shape g = transposed_ ? product(in_, out_, rows_) : product(out_, in_, rows_);
      g.transpose_a = true;
      g.lda = transposed_ ? in_ : out_;
      g.ldb = transposed_ ? out_ : in_;
      const float *a = transposed_ ? bottom_.data : top_.diff,
                  *b = transposed_ ? top_.diff : bottom_.data;
      libraries_.gemm(g, a, b, weight_gradient_.begin());
      weight_gradient_.end();
    }
    if (bias_gradient_.wanted()) {
      sum_channels(compute_, {rows_, out_, 1}, top_.diff, bias_gradient_.begin());
      bias_gradient_.end();
    }
    if (!backward_wanted_) return;
    gemm_shape g = product(rows_, in_, out_);
    g.transpose_b = transposed_;
    g.lda = out_;
    g.ldb = transposed_ ? out_ : in_;
    libraries_.gemm(g, top_.diff, weights_, bottom_.diff);
  }

 private:
  /// C [m, n] from sums of k products.
  static gemm_shape product(std::size_t m, std::size_t n, std::size_t k) {
    gemm_shape g;
    g.m = m;
    g.n = g.ldc = n;
    g.k = k;
    return g;
  }

  stream& compute_;
  library& libraries_;
  std::size_t rows_, in_, out_;
  bool transposed_;
  const gpu_blob &bottom_, &top_;
  bool backward_wanted_;
  const float *weights_, *bias_ = nullptr;
  gradient_slot weight_gradient_, bias_gradient_;
};

}  // namespace

std::unique_ptr<kernel> make_inner_product(const layer_context& c) {
  const int axis = c.layer.spec.inner_product_param().axis();
  const auto axes = static_cast<int>(c.bottom_shape(0).size());
  return std::make_unique<inner_product_kernel>(
      c, static_cast<std::size_t>(axis < 0 ? axis + axes : axis));
}

}  // namespace poseidon::gpu
