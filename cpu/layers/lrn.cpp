// cpu/layers/lrn.cpp - local response normalisation, in the layout of the bottom: across channels our own, else oneDNN's.
#include "cpu/kernels/lrn_across.hpp"
#include "cpu/layer.hpp"

namespace poseidon::cpu {
namespace {

/// Where oneDNN's kernels compute: in the bottom's layout, of float32.
layout float_form_of(const layer_context& c) {
  const layout form = c.bottom(0).form;
  return is_bf16(form) && block_of(form) > 1 ? layout::c16 : form;
}

class across_kernel final : public kernel {
 public:
  explicit across_kernel(const layer_context& c)
      : x_(c.bottom(0), part::data, c.bottom(0).form),
        y_(c.top(0), part::data, c.bottom(0).form),
        products_(c.bottom(0).form, image_of(c.bottom_shape(0)), numbers_of(c)) {
    if (!c.wants_diff(0)) return;
    dx_ = view(c.bottom(0), part::diff, c.bottom(0).form);
    dy_ = view(c.top(0), part::diff, c.bottom(0).form);
  }

  void forward(const pass&) override {
    with_type(x_.form(), [&](auto of) {
      using T = decltype(of);
      const T* x = as<T>(x_.load());
      products_.forward(x, as<T>(y_.memory()));
    });
    y_.store();
  }

  void backward(const pass&) override {
    if (!dx_.exists()) return;
    with_type(x_.form(), [&](auto of) {
      using T = decltype(of);
      const T *x = as<T>(x_.load()), *dy = as<T>(dy_.load());
      products_.backward(x, dy, as<T>(dx_.memory()));
    });
    dx_.store();
  }

 private:
  static lrn_across::numbers numbers_of(const layer_context& c) {
    const auto& p = c.layer.spec.lrn_param();
    return {p.local_size(), p.alpha(), p.beta(), p.k()};
  }

  view x_, y_, dx_, dy_;
  lrn_across products_;
};

class lrn_kernel final : public kernel {
 public:
  explicit lrn_kernel(const layer_context& c)
      : x_(c.bottom(0), part::data, float_form_of(c)), y_(c.top(0), part::data, float_form_of(c)) {
    const auto& p = c.layer.spec.lrn_param();
    const bool within = p.norm_region() == ::caffe::LRNParameter::WITHIN_CHANNEL;
    const auto how =
        within ? dnnl::algorithm::lrn_within_channel : dnnl::algorithm::lrn_across_channels;
    const float k = within ? 1.0f : p.k();  // Caffe ignores k within channels
    const dnnl_desc d = describe(c.bottom_shape(0), float_form_of(c));
    dnnl_run& run = c.state.dnnl;
    const bool backward = c.wants_diff(0);
    const auto kind =
        backward ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    const lrn_numbers numbers{p.local_size(), p.alpha(), p.beta(), k};
    const auto f = lrn_forward_descriptor(run.engine(), run.attributes(), kind, how, d, numbers);
    forward_ = dnnl_step(run, dnnl::lrn_forward(f), f);
    forward_.bind(DNNL_ARG_SRC, d);
    forward_.bind(DNNL_ARG_DST, d);
    if (!backward) return;
    const auto b = lrn_backward_descriptor(run.engine(), run.attributes(), f, how, d, numbers);
    backward_ = dnnl_step(run, dnnl::lrn_backward(b), b);
    backward_.bind(DNNL_ARG_SRC, d);
    backward_.bind(DNNL_ARG_DIFF_DST, d);
    backward_.bind(DNNL_ARG_DIFF_SRC, d);
    if (f.workspace_desc().get_size() != 0) {
      workspace_ = buffer(f.workspace_desc().get_size() / sizeof(float) + 1);
      forward_.bind(DNNL_ARG_WORKSPACE, f.workspace_desc());
      forward_.point(DNNL_ARG_WORKSPACE, workspace_.data());
      backward_.bind(DNNL_ARG_WORKSPACE, f.workspace_desc());
      backward_.point(DNNL_ARG_WORKSPACE, workspace_.data());
    }
    dx_ = view(c.bottom(0), part::diff, float_form_of(c));
    dy_ = view(c.top(0), part::diff, float_form_of(c));
  }

  void forward(const pass&) override {
    forward_.point(DNNL_ARG_SRC, x_.load());
    forward_.point(DNNL_ARG_DST, y_.memory());
    forward_.run();
    y_.store();
  }

  void backward(const pass&) override {
    if (!dx_.exists()) return;
    backward_.point(DNNL_ARG_SRC, x_.load());
    backward_.point(DNNL_ARG_DIFF_DST, dy_.load());
    backward_.point(DNNL_ARG_DIFF_SRC, dx_.memory());
    backward_.run();
    dx_.store();
  }

 private:
  dnnl_step forward_, backward_;
  buffer workspace_;
  view x_, y_, dx_, dy_;
};

}  // namespace

std::unique_ptr<kernel> make_lrn(const layer_context& c) {
  if (c.bottom_shape(0).size() != 4) {
    c.refuse("LRN wants a bottom of 4 axes, this one is " + to_string(c.bottom_shape(0)) + ".");
  }
  if (c.in_place())
    c.refuse("LRN cannot work in place: its backward needs its input. Name the top anew.");
  // With k = 0 the padding of a layout would be 0/0, and its neighbours would add that to their sums.
  const auto& p = c.layer.spec.lrn_param();
  if (p.norm_region() == ::caffe::LRNParameter::ACROSS_CHANNELS && p.k() > 0)
    return std::make_unique<across_kernel>(c);
  return std::make_unique<lrn_kernel>(c);
}

}  // namespace poseidon::cpu
