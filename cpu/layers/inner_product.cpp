// cpu/layers/inner_product.cpp
//
// InnerProduct as matrix products on Caffe's own layouts, so that big weight matrices are never
// repacked: y = x W^T + b. A ReLU that follows in place is applied with the bias.
//
// With batches worth the name, y comes from oneDNN's matmul: W^T is the case in which its sgemm is slow (one
// core of a Zen 4, ms: CIFAR-10 quick's ip1 0.28 to 0.14, AlexNet's fc6 55 to 38, GoogLeNet's loss3 0.94 to
// 0.44). The products of the backward pass are as fast or faster in sgemm. With --math bf16 on a processor that multiplies tiles, all three
// are products of bfloat16.
#include "cpu/bf16_products.hpp"
#include "cpu/dnnl_run.hpp"
#include "cpu/fusion.hpp"
#include "cpu/layer.hpp"
#include "cpu/matrix.hpp"

#include <algorithm>
#include <stdexcept>

namespace poseidon::cpu {
namespace {

// Rounding and packing the weights in each iteration takes as long as the products of fewer rows.
constexpr std::size_t worth_rounding = 64;
constexpr std::size_t worth_a_matmul = 16;  // rows; below it sgemm reads the weights no slower

/// y [rows, out] = x W^T, for weights that lie as [out, in].
dnnl_step make_product(dnnl_run& run, std::size_t rows, std::size_t in, std::size_t out) {
  const auto desc = [](std::size_t a, std::size_t b, dnnl::memory::format_tag tag) {
    return dnnl_desc({static_cast<dnnl::memory::dim>(a), static_cast<dnnl::memory::dim>(b)},
                     dnnl::memory::data_type::f32, tag);
  };
  const auto x = desc(rows, in, dnnl::memory::format_tag::ab);
  const auto w = desc(in, out, dnnl::memory::format_tag::ba);
  const auto y = desc(rows, out, dnnl::memory::format_tag::ab);
  const auto d = forward_descriptor<dnnl::matmul>(run.engine(), run.attributes(), x, w, y);
  if (is_reference(d)) return {};
  return product_step(run, d);
}

class inner_product_kernel final : public kernel {
 public:
  inner_product_kernel(const layer_context& c, std::size_t axis)
      : rows_(static_cast<std::size_t>(count(c.bottom_shape(0), 0, axis))),
        in_(static_cast<std::size_t>(count(c.bottom_shape(0), axis, c.bottom_shape(0).size()))),
        out_(c.layer.spec.inner_product_param().num_output()),
        transposed_(c.layer.spec.inner_product_param().transpose()),
        weights_(c.parameter(0)),
        weight_gradient_(c.gradient(0)),
        x_(c.bottom(0), part::data, layout::plain),
        y_(c.top(0), part::data, layout::plain) {
    if (c.layer.spec.inner_product_param().bias_term()) {
      bias_ = c.parameter(1);
      bias_gradient_ = c.gradient(1);
    }
    const bool rounds =
        c.state.math == cpu_math::bf16 && multiplies_bf16_tiles() && rows_ >= worth_rounding;
    if (rows_ >= worth_a_matmul && !transposed_ && !rounds)
      product_ = make_product(c.state.dnnl, rows_, in_, out_);
    if (const auto relu = relu_in_place_after(c)) {
      relu_ = true;
      slope_ = relu->slope;
      c.state.forward_fused[relu->layer] = true;
    }
    if (c.state.has_backward()) {
      if (c.layer.needs_backward) dy_ = view(c.top(0), part::diff, layout::plain);
      if (c.wants_diff(0)) dx_ = view(c.bottom(0), part::diff, layout::plain);
    }
    if (rounds) make_rounded(c);
  }

  void forward(const pass&) override {
    float* y = y_.memory();
    if (rounded_) {
      narrow(x_.load(), rows_ * in_, as<bfloat16>(rounded_x_.data()));
      rounded_->forward(rounded_x_.data(), y);
    } else if (product_.made()) {
      product_.point(DNNL_ARG_SRC, x_.load());
      product_.point(DNNL_ARG_WEIGHTS, weights_.values());
      product_.point(DNNL_ARG_DST, y);
      product_.run();
    } else {
      const matrix x{x_.load(), false, in_};
      const matrix w{weights_.values(), !transposed_, transposed_ ? out_ : in_};
      multiply(rows_, out_, in_, x, w, y);
    }
    if (bias_.exists() && !rounded_) {
      const float* b = bias_.values();
      for (std::size_t n = 0; n < rows_; ++n) {
        for (std::size_t i = 0; i < out_; ++i) y[n * out_ + i] += b[i];
      }
    }
    if (relu_ && !rounded_) {
      const float slope = slope_;
      for (std::size_t i = 0; i < rows_ * out_; ++i) y[i] = y[i] > 0 ? y[i] : slope * y[i];
    }
    y_.store();
  }

  void backward(const pass&) override {
    if (!dy_.exists()) return;
    const float* dy = dy_.load();
    if (rounded_) narrow(dy, rows_ * out_, as<bfloat16>(rounded_dy_.data()));
    if (weight_gradient_.wanted() && rounded_) {
      rounded_->backward_weights(rounded_x_.data(), rounded_dy_.data(), weight_gradient_.begin());
      weight_gradient_.end();
    } else if (weight_gradient_.wanted()) {
      const matrix x{x_.memory(), transposed_, in_};  // as forward() loaded it
      const matrix g{dy, !transposed_, out_};
      float* dw = weight_gradient_.begin();
      if (transposed_) {
        multiply(in_, out_, rows_, x, g, dw);
      } else {
        multiply(out_, in_, rows_, g, x, dw);
      }
      weight_gradient_.end();
    }
    if (bias_gradient_.wanted()) {
      sum_rows(rows_, out_, dy, bias_gradient_.begin());
      bias_gradient_.end();
    }
    if (!dx_.exists()) return;
    if (rounded_) {
      rounded_->backward_data(rounded_dy_.data(), dx_.memory());
    } else {
      const matrix w{weights_.values(), transposed_, transposed_ ? out_ : in_};
      multiply(rows_, in_, out_, {dy, false, out_}, w, dx_.memory());
    }
    dx_.store();
  }

  void factors(std::span<float> u, std::span<float> v) override {
    // A Filter may have made the batch smaller: rows of zeros add nothing to a gradient.
    const auto copy = [](const float* from, std::size_t values, std::span<float> to) {
      if (values > to.size())
        throw std::invalid_argument("factors of " + std::to_string(values) +
                                    " values do not fit into " + std::to_string(to.size()));
      std::fill(std::copy_n(from, values, to.begin()), to.end(), 0.0f);
    };
    copy(dy_.memory(), rows_ * out_, u);  // as backward() loaded it
    copy(x_.memory(), rows_ * in_, v);
  }

 private:
  void make_rounded(const layer_context& c) {
    rounded_.emplace(
        c.state.dnnl,
        bf16_products::sizes{
            .rows = rows_, .in = in_, .out = out_, .transposed = transposed_, .wide_results = true},
        weights_, bias_);
    rounded_->make_forward(relu_ ? std::optional(slope_) : std::nullopt);
    rounded_x_ = buffer(floats_of(rows_ * in_, layout::plain_bf16));
    if (!dy_.exists()) return;
    rounded_dy_ = buffer(floats_of(rows_ * out_, layout::plain_bf16));
    if (weight_gradient_.wanted()) rounded_->make_weights();
    if (dx_.exists()) rounded_->make_data();
  }

  std::size_t rows_, in_, out_;
  bool transposed_;
  bool relu_ = false;
  float slope_ = 0;
  parameter_reader weights_, bias_;
  gradient_slot weight_gradient_, bias_gradient_;
  dnnl_step product_;
  std::optional<bf16_products> rounded_;  ///< in place of all other products
  buffer rounded_x_, rounded_dy_;
  view x_, y_, dx_, dy_;
};

}  // namespace

std::unique_ptr<kernel> make_inner_product(const layer_context& c) {
  const auto axes = static_cast<int>(c.bottom_shape(0).size());
  int axis = c.layer.spec.inner_product_param().axis();
  if (axis < 0) axis += axes;
  return std::make_unique<inner_product_kernel>(c, static_cast<std::size_t>(axis));
}

}  // namespace poseidon::cpu
