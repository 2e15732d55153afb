// cpu/layers/convolution.cpp
//
// Convolution over oneDNN. Each direction has its own primitive and asks for the layouts that it is
// fast in; views convert where a blob has another one. Weights arrive in Caffe's layout and are
// repacked when their version changes. A ReLU that follows in place is applied by the forward
// primitive.
#include "cpu/convolution_shape.hpp"
#include "cpu/fusion.hpp"
#include "cpu/kernels/unpack_weights.hpp"
#include "cpu/layer.hpp"
#include "cpu/layers/pixel_products.hpp"
#include "cpu/layers/sparse_convolution.hpp"
#include "cpu/layers/window_gradient.hpp"
#include "cpu/packed_weights.hpp"
#include "cpu/winograd/layer.hpp"
#include "models/net/convolution_windows.hpp"

namespace poseidon::cpu {
namespace {

using algorithm = dnnl::algorithm;

class convolution_kernel final : public kernel {
 public:
  explicit convolution_kernel(const layer_context& c)
      : shape_(resolve_convolution(c.layer, c.bottom_shape(0))),
        run_(&c.state.dnnl),
        bias_(shape_.bias ? c.parameter(1) : parameter_reader()),
        weight_gradient_(c.gradient(0)),
        bias_gradient_(shape_.bias ? c.gradient(1) : gradient_slot()) {
    const std::size_t pairs = c.layer.bottoms.size();
    const dnnl_desc plain_weights = describe_plain(shape_.weights());
    const auto forward = make_forward(c, plain_weights);
    if (c.state.has_backward()) {
      after_pooling_ = make_pooled_backward(c, shape_);
      if (!after_pooling_) {
        after_relu_ = make_relu_backward(c, shape_);
        top_ = &c.top(0);
        const bool learns = weight_gradient_.wanted() || bias_gradient_.wanted();
        if (learns && forward_layouts_.out == layout::pixels_bf16 && pairs == 1 &&
            weight_gradient_.wanted() && window_gradient::suits(shape_))
          from_windows_.emplace(*run_, shape_, c.bottom_shape(0), c.top_shape(0));
        else if (learns)
          make_weights(c, plain_weights, forward);
        make_data(c, plain_weights, forward);
      }
    }
    pairs_.resize(pairs);
    for (std::size_t i = 0; i < pairs; ++i) {
      pair& p = pairs_[i];
      p.x = view(c.bottom(i), part::data, forward_layouts_.in);
      p.y = view(c.top(i), part::data, forward_layouts_.out);
      if (from_windows_) {
        p.x_for_weights = view(c.bottom(i), part::data, layout::plain);
        p.dy_for_weights = view(c.top(i), part::diff, layout::pixels_bf16);
      } else if (weights_step_.made()) {
        p.x_for_weights = view(c.bottom(i), part::data, weights_layouts_.in);
        p.dy_for_weights = view(c.top(i), part::diff, weights_layouts_.out);
      }
      if (data_step_.made() && c.wants_diff(i)) {
        p.dx = view(c.bottom(i), part::diff, data_layouts_.in);
        p.dy_for_data = view(c.top(i), part::diff, data_layouts_.out);
      }
    }
  }

  void forward(const pass&) override {
    forward_step_.point(DNNL_ARG_WEIGHTS, forward_weights_.load());
    if (shape_.bias) forward_step_.point(DNNL_ARG_BIAS, bias_.values());
    for (pair& p : pairs_) {
      forward_step_.point(DNNL_ARG_SRC, p.x.load());
      forward_step_.point(DNNL_ARG_DST, p.y.memory());
      forward_step_.run();
      p.y.store();
    }
  }

  void backward(const pass& now) override {
    if (after_pooling_) return after_pooling_->backward(now);
    if (after_relu_) {
      if (after_relu_->worthwhile()) return after_relu_->backward(now);
      mask_diff();
    }
    if (from_windows_) backward_from_windows();
    if (weights_step_.made()) backward_weights();
    if (!data_step_.made()) return;
    data_step_.point(DNNL_ARG_WEIGHTS, data_weights_.load());
    for (pair& p : pairs_) {
      if (!p.dx.exists()) continue;
      data_step_.point(DNNL_ARG_DIFF_DST, p.dy_for_data.load());
      data_step_.point(DNNL_ARG_DIFF_SRC, p.dx.memory());
      data_step_.run();
      p.dx.store();
    }
  }

 private:
  struct pair {
    view x, y, x_for_weights, dy_for_weights, dx, dy_for_data;
  };

  dnnl::convolution_forward::primitive_desc make_forward(const layer_context& c,
                                                         const dnnl_desc& plain_weights) {
    dnnl_run& run = c.state.dnnl;
    dnnl::primitive_attr attributes = run.attributes();
    // Several pairs would each need their own ReLU; then it stays where the file put it.
    if (const auto relu = relu_in_place_after(c); relu && c.layer.bottoms.size() == 1) {
      attributes.set_post_ops(then_relu(relu->slope));
      c.state.forward_fused[relu->layer] = true;
    }
    const convolution_layouts option = choose_layouts(c.state.graph, c.layer, c.state.math);
    const convolution_layouts in_float = choose_layouts(c.state.graph, c.layer, cpu_math::fp32);
    const auto [d, layouts] = first_fast({option, in_float, {}}, [&](const convolution_layouts& l) {
      return forward_descriptor<dnnl::convolution_forward>(
          run.engine(), attributes, dnnl::prop_kind::forward_training,
          algorithm::convolution_direct, describe(c.bottom_shape(0), l.in),
          any_layout(shape_.weights(), l.in), bias_desc(), describe(c.top_shape(0), l.out),
          shape_.stride, shape_.zeros_between(), shape_.pad, shape_.pad);
    });
    forward_layouts_ = layouts;
    forward_step_ = dnnl_step(run, dnnl::convolution_forward(d), d);
    forward_step_.bind(DNNL_ARG_SRC, d.src_desc());
    forward_step_.bind(DNNL_ARG_WEIGHTS, d.weights_desc());
    if (shape_.bias) forward_step_.bind(DNNL_ARG_BIAS, d.bias_desc());
    forward_step_.bind(DNNL_ARG_DST, d.dst_desc());
    forward_weights_ = packed_weights(run, c.parameter(0), plain_weights, d.weights_desc());
    return d;
  }

  void make_weights(const layer_context& c, const dnnl_desc& plain_weights,
                    const dnnl::convolution_forward::primitive_desc& hint) {
    dnnl_run& run = c.state.dnnl;
    const auto [d, layouts] = first_fast({forward_layouts_, {}}, [&](const convolution_layouts& l) {
      return backward_descriptor<dnnl::convolution_backward_weights>(
          run.engine(), run.attributes(), hint, algorithm::convolution_direct,
          describe(c.bottom_shape(0), l.in), any_layout(shape_.weights()), bias_desc(),
          describe(c.top_shape(0), l.out), shape_.stride, shape_.zeros_between(), shape_.pad,
          shape_.pad);
    });
    weights_layouts_ = layouts;
    weights_step_ = dnnl_step(run, dnnl::convolution_backward_weights(d), d);
    weights_step_.bind(DNNL_ARG_SRC, d.src_desc());
    weights_step_.bind(DNNL_ARG_DIFF_DST, d.diff_dst_desc());
    weights_step_.bind(DNNL_ARG_DIFF_WEIGHTS, d.diff_weights_desc());
    if (shape_.bias) weights_step_.bind(DNNL_ARG_DIFF_BIAS, d.diff_bias_desc());
    unpack_ = reorder_step(run, d.diff_weights_desc(), plain_weights);
    unpacks_blocks_ = suits_unpacking(d.diff_weights_desc());
    if (unpack_.made()) packed_gradient_ = buffer(d.diff_weights_desc().get_size() / sizeof(float));
    // oneDNN writes a gradient also where no solver uses it.
    if (!weight_gradient_.wanted())
      spare_weights_ = buffer(plain_weights.get_size() / sizeof(float));
    spare_bias_ = buffer(shape_.out);
    pair_weights_ =
        buffer(c.layer.bottoms.size() > 1 ? plain_weights.get_size() / sizeof(float) : 0);
    pair_bias_ = buffer(c.layer.bottoms.size() > 1 ? shape_.out : 0);
  }

  void make_data(const layer_context& c, const dnnl_desc& plain_weights,
                 const dnnl::convolution_forward::primitive_desc& hint) {
    bool wanted = false;
    for (std::size_t i = 0; i < c.layer.bottoms.size(); ++i) wanted = wanted || c.wants_diff(i);
    if (!wanted) return;
    dnnl_run& run = c.state.dnnl;
    const convolution_layouts blocked{forward_layouts_.out, forward_layouts_.out};
    const auto [d, layouts] =
        first_fast({forward_layouts_, blocked, {}}, [&](const convolution_layouts& l) {
          return backward_descriptor<dnnl::convolution_backward_data>(
              run.engine(), run.attributes(), hint, algorithm::convolution_direct,
              describe(c.bottom_shape(0), l.in), any_layout(shape_.weights(), l.in),
              describe(c.top_shape(0), l.out), shape_.stride, shape_.zeros_between(), shape_.pad,
              shape_.pad);
        });
    data_layouts_ = layouts;
    data_step_ = dnnl_step(run, dnnl::convolution_backward_data(d), d);
    data_step_.bind(DNNL_ARG_DIFF_SRC, d.diff_src_desc());
    data_step_.bind(DNNL_ARG_WEIGHTS, d.weights_desc());
    data_step_.bind(DNNL_ARG_DIFF_DST, d.diff_dst_desc());
    data_weights_ = packed_weights(run, c.parameter(0), plain_weights, d.weights_desc());
  }

  void backward_from_windows() {
    from_windows_->run(pairs_[0].x_for_weights.load(),
                       as<bfloat16>(pairs_[0].dy_for_weights.load()), weight_gradient_.begin(),
                       bias_gradient_.wanted() ? bias_gradient_.begin() : nullptr);
    weight_gradient_.end();
    if (bias_gradient_.wanted()) bias_gradient_.end();
  }

  /// The first pair writes both gradients, the others add theirs in order.
  void backward_weights() {
    float* dw = weight_gradient_.wanted() ? weight_gradient_.begin() : spare_weights_.data();
    float* db = bias_gradient_.wanted() ? bias_gradient_.begin() : spare_bias_.data();
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      float* to_w = i == 0 ? dw : pair_weights_.data();
      float* to_b = i == 0 ? db : pair_bias_.data();
      weights_step_.point(DNNL_ARG_SRC, pairs_[i].x_for_weights.load());
      weights_step_.point(DNNL_ARG_DIFF_DST, pairs_[i].dy_for_weights.load());
      weights_step_.point(DNNL_ARG_DIFF_WEIGHTS, unpack_.made() ? packed_gradient_.data() : to_w);
      if (shape_.bias) weights_step_.point(DNNL_ARG_DIFF_BIAS, to_b);
      weights_step_.run();
      unpack(to_w);
      if (i == 0) continue;
      for (std::size_t k = 0; k < pair_weights_.size(); ++k) dw[k] += to_w[k];
      for (std::size_t k = 0; k < pair_bias_.size(); ++k) db[k] += to_b[k];
    }
    if (weight_gradient_.wanted()) weight_gradient_.end();
    if (bias_gradient_.wanted()) bias_gradient_.end();
  }

  /// Are these the blocks that unpack_weights() reads, and is it faster than oneDNN's own copy?
  [[nodiscard]] bool suits_unpacking(const dnnl_desc& d) const {
    constexpr std::size_t block = 16, page = 4096 / sizeof(float);
    if (shape_.axes() != 2 || shape_.groups != 1 || shape_.kernel[0] * shape_.kernel[1] != 1 ||
        shape_.in % page != 0 || shape_.out % block != 0)
      return false;
    return d == dnnl_desc(shape_.weights(), dnnl::memory::data_type::f32,
                          dnnl::memory::format_tag::OIhw16i16o);
  }

  /// The weights' gradient as Caffe has it.
  void unpack(float* to) {
    if (!unpack_.made()) return;
    if (unpacks_blocks_) {
      unpack_weights(packed_gradient_.data(), shape_.out, shape_.in, to);
      run_->count_reorder(shape_.out * shape_.in * sizeof(float));
      return;
    }
    unpack_.point(DNNL_ARG_FROM, packed_gradient_.data());
    unpack_.point(DNNL_ARG_TO, to);
    unpack_.run();
  }

  /// What the fused ReLU's own backward would have done. Only over float32, see suits() of the sparse kernels.
  void mask_diff() {
    const float* y = top_->data;
    float* dy = top_->diff;
    const std::size_t size = top_->stored();
    for (std::size_t i = 0; i < size; ++i) dy[i] = y[i] > 0 ? dy[i] : 0;
  }

  [[nodiscard]] dnnl_desc bias_desc() const {
    return shape_.bias ? describe_plain({static_cast<dnnl::memory::dim>(shape_.out)}) : dnnl_desc();
  }

  convolution_shape shape_;
  dnnl_run* run_;
  bool unpacks_blocks_ = false;
  parameter_reader bias_;
  gradient_slot weight_gradient_, bias_gradient_;
  convolution_layouts forward_layouts_, weights_layouts_, data_layouts_;
  dnnl_step forward_step_, weights_step_, data_step_, unpack_;
  packed_weights forward_weights_, data_weights_;
  buffer packed_gradient_, spare_weights_, spare_bias_, pair_weights_, pair_bias_;
  std::vector<pair> pairs_;
  std::optional<window_gradient> from_windows_;
  std::unique_ptr<sparse_backward> after_pooling_, after_relu_;
  cpu_blob* top_ = nullptr;
};

}  // namespace

std::unique_ptr<kernel> make_convolution(const layer_context& c) {
  require_convolvable(c.layer, c.bottom_shape(0), "CPU");
  if (suits_winograd(c.state.graph, c.layer, c.bottom_shape(0), c.top_shape(0), c.state.math))
    return make_winograd_convolution(c);
  if (suits_pixel_products(c.state.graph, c.layer, c.bottom_shape(0), c.state.math))
    return make_pixel_products(c);
  return std::make_unique<convolution_kernel>(c);
}

}  // namespace poseidon::cpu
