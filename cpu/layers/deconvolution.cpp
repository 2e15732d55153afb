// cpu/layers/deconvolution.cpp - Deconvolution over oneDNN: what Convolution's backward pass does to the
// gradient, done to the values. Blocked inside, where oneDNN has a fast kernel for that.
#include "cpu/convolution_shape.hpp"
#include "cpu/packed_weights.hpp"
#include "models/net/convolution_windows.hpp"

namespace poseidon::cpu {
namespace {

using algorithm = dnnl::algorithm;
using dims = dnnl::memory::dims;

/// Caffe keeps [in, out / groups, kernel]; oneDNN counts (groups,) out, in. The same memory.
dnnl_desc plain_weights(const convolution_shape& s) {
  const auto g = static_cast<dnnl::memory::dim>(s.groups);
  const auto out = static_cast<dnnl::memory::dim>(s.out) / g;
  const auto in = static_cast<dnnl::memory::dim>(s.in) / g;
  dims extents{out, in}, strides(2 + s.axes(), 1);
  extents.insert(extents.end(), s.kernel.begin(), s.kernel.end());
  for (std::size_t a = extents.size(); a-- > 3;) strides[a - 1] = strides[a] * extents[a];
  const auto window = s.axes() == 0 ? 1 : strides[2] * extents[2];
  strides[0] = window;  // the outputs of one input lie together
  strides[1] = window * out;
  if (s.groups > 1) {
    extents.insert(extents.begin(), g);
    strides.insert(strides.begin(), window * out * in);
  }
  return {extents, dnnl::memory::data_type::f32, strides};
}

/// Blocked where every group fills its blocks, else plain.
convolution_layouts layouts_of(const convolution_shape& s) {
  const layout form =
      dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core ? layout::c16 : layout::c8;
  const std::size_t whole = block_of(form) * s.groups;
  if (s.axes() != 2 || s.in % whole != 0 || s.out % whole != 0) return {};
  return {form, form};
}

class deconvolution_kernel final : public kernel {
 public:
  explicit deconvolution_kernel(const layer_context& c)
      : shape_(resolve_convolution(c.layer, c.bottom_shape(0))),
        bias_(shape_.bias ? c.parameter(1) : parameter_reader()),
        weight_gradient_(c.gradient(0)),
        bias_gradient_(shape_.bias ? c.gradient(1) : gradient_slot()) {
    const auto forward = make_forward(c);
    bool any_diff = false;
    for (std::size_t i = 0; i < c.layer.bottoms.size(); ++i) any_diff |= c.wants_diff(i);
    if (any_diff) make_data(c, forward);
    if (weight_gradient_.wanted() || bias_gradient_.wanted()) make_weights(c, forward);
    for (std::size_t i = 0; i < c.layer.bottoms.size(); ++i) {
      pair p;
      p.x = view(c.bottom(i), part::data, forward_layouts_.in);
      p.y = view(c.top(i), part::data, forward_layouts_.out);
      if (weights_.made()) {
        p.x_for_weights = view(c.bottom(i), part::data, weights_layouts_.in);
        p.dy_for_weights = view(c.top(i), part::diff, weights_layouts_.out);
      }
      if (c.wants_diff(i)) {
        p.dx = view(c.bottom(i), part::diff, data_layouts_.in);
        p.dy_for_data = view(c.top(i), part::diff, data_layouts_.out);
      }
      pairs_.push_back(std::move(p));
    }
  }

  void forward(const pass&) override {
    forward_.point(DNNL_ARG_WEIGHTS, forward_weights_.load());
    if (shape_.bias) forward_.point(DNNL_ARG_BIAS, bias_.values());
    for (pair& p : pairs_) {
      forward_.point(DNNL_ARG_SRC, p.x.load());
      forward_.point(DNNL_ARG_DST, p.y.memory());
      forward_.run();
      p.y.store();
    }
  }

  void backward(const pass&) override {
    if (weights_.made()) backward_weights();
    if (!data_.made()) return;
    data_.point(DNNL_ARG_WEIGHTS, data_weights_.load());
    for (pair& p : pairs_) {
      if (!p.dx.exists()) continue;
      data_.point(DNNL_ARG_DIFF_DST, p.dy_for_data.load());
      data_.point(DNNL_ARG_DIFF_SRC, p.dx.memory());
      data_.run();
      p.dx.store();
    }
  }

 private:
  struct pair {
    view x, y, x_for_weights, dy_for_weights, dx, dy_for_data;
  };
  using forward_desc = dnnl::deconvolution_forward::primitive_desc;

  forward_desc make_forward(const layer_context& c) {
    dnnl_run& run = c.state.dnnl;
    const auto [d, layouts] =
        first_fast({layouts_of(shape_), {}}, [&](const convolution_layouts& l) {
          return forward_descriptor<dnnl::deconvolution_forward>(
              run.engine(), run.attributes(), dnnl::prop_kind::forward_training,
              algorithm::deconvolution_direct, describe(c.bottom_shape(0), l.in),
              any_layout(shape_.weights()), bias_desc(), describe(c.top_shape(0), l.out),
              shape_.stride, shape_.zeros_between(), shape_.pad, shape_.pad);
        });
    forward_layouts_ = layouts;
    forward_ = dnnl_step(run, dnnl::deconvolution_forward(d), d);
    forward_.bind(DNNL_ARG_SRC, d.src_desc());
    forward_.bind(DNNL_ARG_WEIGHTS, d.weights_desc());
    if (shape_.bias) forward_.bind(DNNL_ARG_BIAS, d.bias_desc());
    forward_.bind(DNNL_ARG_DST, d.dst_desc());
    forward_weights_ = packed_weights(run, c.parameter(0), weights(), d.weights_desc());
    return d;
  }

  void make_data(const layer_context& c, const forward_desc& hint) {
    dnnl_run& run = c.state.dnnl;
    const auto [d, layouts] = first_fast({forward_layouts_, {}}, [&](const convolution_layouts& l) {
      return backward_descriptor<dnnl::deconvolution_backward_data>(
          run.engine(), run.attributes(), hint, algorithm::deconvolution_direct,
          describe(c.bottom_shape(0), l.in), any_layout(shape_.weights()),
          describe(c.top_shape(0), l.out), shape_.stride, shape_.zeros_between(), shape_.pad,
          shape_.pad);
    });
    data_layouts_ = layouts;
    data_ = dnnl_step(run, dnnl::deconvolution_backward_data(d), d);
    data_.bind(DNNL_ARG_DIFF_SRC, d.diff_src_desc());
    data_.bind(DNNL_ARG_WEIGHTS, d.weights_desc());
    data_.bind(DNNL_ARG_DIFF_DST, d.diff_dst_desc());
    data_weights_ = packed_weights(run, c.parameter(0), weights(), d.weights_desc());
  }

  void make_weights(const layer_context& c, const forward_desc& hint) {
    dnnl_run& run = c.state.dnnl;
    const auto [d, layouts] = first_fast({forward_layouts_, {}}, [&](const convolution_layouts& l) {
      return backward_descriptor<dnnl::deconvolution_backward_weights>(
          run.engine(), run.attributes(), hint, algorithm::deconvolution_direct,
          describe(c.bottom_shape(0), l.in), any_layout(shape_.weights()), bias_desc(),
          describe(c.top_shape(0), l.out), shape_.stride, shape_.zeros_between(), shape_.pad,
          shape_.pad);
    });
    weights_layouts_ = layouts;
    weights_ = dnnl_step(run, dnnl::deconvolution_backward_weights(d), d);
    weights_.bind(DNNL_ARG_SRC, d.src_desc());
    weights_.bind(DNNL_ARG_DIFF_DST, d.diff_dst_desc());
    weights_.bind(DNNL_ARG_DIFF_WEIGHTS, d.diff_weights_desc());
    if (shape_.bias) weights_.bind(DNNL_ARG_DIFF_BIAS, d.diff_bias_desc());
    unpack_ = reorder_step(run, d.diff_weights_desc(), weights());
    packed_gradient_ = buffer(d.diff_weights_desc().get_size() / sizeof(float));
    weights_of_pair_ = buffer(weights().get_size() / sizeof(float));
    bias_of_pair_ = buffer(shape_.out);
  }

  /// The first pair writes both gradients, the others add theirs in order.
  void backward_weights() {
    float* dw = weight_gradient_.wanted() ? weight_gradient_.begin() : nullptr;
    float* db = bias_gradient_.wanted() ? bias_gradient_.begin() : nullptr;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      weights_.point(DNNL_ARG_SRC, pairs_[i].x_for_weights.load());
      weights_.point(DNNL_ARG_DIFF_DST, pairs_[i].dy_for_weights.load());
      float* to = unpack_.made() ? packed_gradient_.data() : weights_of_pair_.data();
      weights_.point(DNNL_ARG_DIFF_WEIGHTS, to);
      if (shape_.bias) weights_.point(DNNL_ARG_DIFF_BIAS, bias_of_pair_.data());
      weights_.run();
      if (unpack_.made()) {
        unpack_.point(DNNL_ARG_FROM, packed_gradient_.data());
        unpack_.point(DNNL_ARG_TO, weights_of_pair_.data());
        unpack_.run();
      }
      gather(dw, weights_of_pair_, i == 0);
      gather(db, bias_of_pair_, i == 0);
    }
    if (dw != nullptr) weight_gradient_.end();
    if (db != nullptr) bias_gradient_.end();
  }

  static void gather(float* into, const buffer& from, bool first) {
    if (into == nullptr) return;
    for (std::size_t k = 0; k < from.size(); ++k) {
      into[k] = first ? from.data()[k] : into[k] + from.data()[k];
    }
  }

  [[nodiscard]] dnnl_desc weights() const { return plain_weights(shape_); }
  [[nodiscard]] dnnl_desc bias_desc() const {
    return shape_.bias ? describe_plain({static_cast<dnnl::memory::dim>(shape_.out)}) : dnnl_desc();
  }

  convolution_shape shape_;
  parameter_reader bias_;
  gradient_slot weight_gradient_, bias_gradient_;
  convolution_layouts forward_layouts_, weights_layouts_, data_layouts_;
  dnnl_step forward_, weights_, data_, unpack_;
  packed_weights forward_weights_, data_weights_;
  buffer packed_gradient_, weights_of_pair_, bias_of_pair_;
  std::vector<pair> pairs_;
};

}  // namespace

std::unique_ptr<kernel> make_deconvolution(const layer_context& c) {
  require_convolvable(c.layer, c.bottom_shape(0), "CPU");
  return std::make_unique<deconvolution_kernel>(c);
}

}  // namespace poseidon::cpu
