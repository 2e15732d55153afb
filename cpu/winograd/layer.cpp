#include "cpu/winograd/layer.hpp"

#include "cpu/fusion.hpp"
#include "cpu/winograd/convolution.hpp"

#include <algorithm>

namespace poseidon::cpu {
namespace {

// With first layers and small nets losses leave Caffe's in the fourth digit within 50 iterations.
constexpr std::size_t fewest_channels = 32;
// Fewer do not repay the transformation of the weights.
constexpr std::int64_t fewest_tiles = 16;

winograd_image image_for(const cpu_blob& b, layout form, std::size_t groups) {
  const shape& s = *b.extents;
  const auto samples = static_cast<std::size_t>(s[0]);
  return {static_cast<std::size_t>(s[1]) / groups, static_cast<std::size_t>(s[2]),
          static_cast<std::size_t>(s[3]), stored_size(s, form) / samples};
}

winograd_convolution convolution_for(const layer_context& c, layout form) {
  const shape& bottom = c.bottom_shape(0);
  const convolution_shape s = resolve_convolution(c.layer, bottom);
  return {{static_cast<std::size_t>(bottom[0]), image_for(c.bottom(0), form, s.groups),
           image_for(c.top(0), form, s.groups), static_cast<std::size_t>(s.pad[0]),
           static_cast<std::size_t>(s.pad[1])},
          s.groups,
          form,
          static_cast<std::size_t>(s.kernel[0])};
}

class winograd_kernel final : public kernel {
 public:
  explicit winograd_kernel(const layer_context& c)
      : form_(choose_layouts(c.state.graph, c.layer, c.state.math).out),
        convolution_(convolution_for(c, form_)),
        run_(&c.state.dnnl),
        weights_(c.parameter(0)),
        bias_(c.parameter(1)),
        weight_gradient_(c.gradient(0)),
        bias_gradient_(c.gradient(1)),
        x_(c.bottom(0), part::data, form_),
        y_(c.top(0), part::data, form_) {
    if (const auto relu = relu_in_place_after(c)) {
      slope_ = relu->slope;
      c.state.forward_fused[relu->layer] = true;
    }
    run_->reserve(describe_plain({static_cast<dnnl::memory::dim>(convolution_.scratch_floats())}));
    if (!c.state.has_backward()) return;
    learns_ = weight_gradient_.wanted() || bias_gradient_.wanted();
    if (learns_ && !weight_gradient_.wanted())
      spare_weights_ = buffer(
          static_cast<std::size_t>(count(c.state.graph.parameters[c.layer.parameters[0]].shape)));
    if (learns_ || c.wants_diff(0)) dy_ = view(c.top(0), part::diff, form_);
    if (c.wants_diff(0)) dx_ = view(c.bottom(0), part::diff, form_);
  }

  void forward(const pass&) override {
    const winograd_ending ending{bias_.exists() ? bias_.values() : nullptr, slope_};
    convolution_.forward(x_.load(), weights_.values(), ending, y_.memory(), run_->scratch());
    y_.store();
  }

  void backward(const pass&) override {
    if (!dy_.exists()) return;
    const float* dy = dy_.load();
    if (learns_) backward_weights(dy);
    if (!dx_.exists()) return;
    convolution_.backward_data(dy, weights_.values(), dx_.memory(), run_->scratch());
    dx_.store();
  }

 private:
  void backward_weights(const float* dy) {
    float* dw = weight_gradient_.wanted() ? weight_gradient_.begin() : spare_weights_.data();
    float* db = bias_gradient_.wanted() ? bias_gradient_.begin() : nullptr;
    convolution_.backward_weights(x_.load(), dy, dw, db, run_->scratch());
    if (weight_gradient_.wanted()) weight_gradient_.end();
    if (bias_gradient_.wanted()) bias_gradient_.end();
  }

  layout form_;  ///< all blobs have it
  winograd_convolution convolution_;
  dnnl_run* run_;
  parameter_reader weights_, bias_;
  gradient_slot weight_gradient_, bias_gradient_;
  view x_, y_, dx_, dy_;
  float slope_ = 1;
  bool learns_ = false;
  buffer spare_weights_;  ///< for gradients that no solver uses
};

}  // namespace

bool suits_winograd(const net& graph, const net_layer& layer, const shape& bottom, const shape& top,
                    cpu_math math) {
  const auto& p = layer.spec.convolution_param();
  if (p.engine() == ::caffe::ConvolutionParameter::CAFFE || layer.bottoms.size() != 1) return false;
  const convolution_shape s = resolve_convolution(layer, bottom);
  const std::size_t in = s.in / s.groups, out = s.out / s.groups;
  if (s.axes() != 2 || in < fewest_channels || out < fewest_channels) return false;
  const auto taps = s.kernel[0];
  for (std::size_t a = 0; a < 2; ++a) {
    if (s.kernel[a] != taps || s.stride[a] != 1 || s.dilation[a] != 1 || s.pad[a] >= taps)
      return false;
  }
  // This also says whether groups fill their blocks.
  const convolution_layouts l = choose_layouts(graph, layer, math);
  if (l.in != l.out || block_of(l.out) == 1 || l.out == layout::pixels_bf16) return false;
  const auto tiles = (top[2] + 3) / 4 * ((top[3] + 3) / 4);
  return (taps == 3 || taps == 5) && tiles * top[0] >= fewest_tiles &&
         tiles * 16 <= 2 * top[2] * top[3];
}

std::unique_ptr<kernel> make_winograd_convolution(const layer_context& c) {
  return std::make_unique<winograd_kernel>(c);
}

}  // namespace poseidon::cpu
