// gpu/layers/convolution.cpp
//
// Convolution and Deconvolution as products of the library. A deconvolution is the data gradient of a convolution
// whose images are its top, so the same three products serve both, with bottoms and tops exchanged.
//
// Parameters and their gradients are Caffe's, [out, in / group, kernel] of float32. Products in NHWC want [out, kernel,
// in / group], those of bfloat16 weights of that: they are turned before the products and gradients behind, which is
// little beside the images.
#include "gpu/kernels/channels.hpp"
#include "gpu/kernels/copies.hpp"
#include "gpu/kernels/elementwise.hpp"
#include "gpu/layers/convolution_shape.hpp"
#include "gpu/layers/layers.hpp"
#include "models/net/convolution_windows.hpp"
#include "models/net/fusion.hpp"

namespace poseidon::gpu {
namespace {

convolution_shape resolve(const layer_context& c, bool transposed) {
  const shape &bottom = c.bottom_shape(0), &top = c.top_shape(0);
  require_convolvable(c.layer, bottom, "GPU");
  convolution_shape s = transposed ? resolve_convolution(c.layer, top, bottom)
                                   : resolve_convolution(c.layer, bottom, top);
  s.order = c.order();
  return s;
}

/// A convolution's weights in the order of its products.
class turned_weights {
 public:
  turned_weights(const layer_context& c, const convolution_shape& s, bool backward)
      : compute_(c.compute()),
        out_(static_cast<std::size_t>(s.out)),
        in_(static_cast<std::size_t>(s.in / s.groups)),
        taps_(static_cast<std::size_t>(s.area(s.kernel))),
        type_(type_of(s.order)) {
    const bool same_order = !channels_last(s.order) || in_ == 1 || taps_ == 1;
    if (same_order && type_ == value_type::float32) return;
    values_ = c.allocate(out_ * in_ * taps_ * width(type_));
    if (backward) gradient_ = c.allocate(values_.size());
  }

  /// Before the products of a forward pass; those of its backward pass have the same weights.
  const_values turn(const float* weights) {
    if (values_.size() == 0) return weights;
    const values turned(values_.bytes(), type_);
    gpu::turn(compute_, out_, in_, taps_, weights, turned);
    return turned;
  }
  /// Where a product writes the gradient that is to be in `gradient`, and what puts it there.
  [[nodiscard]] values begin_gradient(float* gradient) {
    if (gradient_.size() == 0) return gradient;
    return {gradient_.bytes(), type_};
  }
  void end_gradient(float* gradient) {
    if (gradient_.size() != 0)
      gpu::turn(compute_, out_, taps_, in_, begin_gradient(gradient), gradient);
  }

 private:
  stream& compute_;
  std::size_t out_, in_, taps_;
  value_type type_;
  device_memory values_, gradient_;  // none where weights are as the products take them
};

class convolution_kernel final : public kernel {
 public:
  convolution_kernel(const layer_context& c, bool transposed)
      : compute_(c.compute()),
        transposed_(transposed),
        parameter_(c.parameter(0)),
        weight_gradient_(c.gradient(0)),
        shape_(resolve(c, transposed)),
        products_(make_products(c)),
        turned_(c, shape_, weight_gradient_.wanted()) {
    if (c.layer.spec.convolution_param().bias_term()) {
      bias_ = c.parameter(1);
      bias_gradient_ = c.gradient(1);
    }
    for (std::size_t i = 0; i < c.layer.bottoms.size(); ++i)
      pairs_.push_back({c.bottom(i), c.top(i), c.wants_diff(i)});
    channels_ = c.channels_of(c.top_shape(0));
    // With the bias, which passes over the results anyway.
    if (bias_ != nullptr && pairs_.size() == 1) take_relu(c);
    if (bias_gradient_.wanted()) scratch_ = c.allocate(sum_scratch_bytes(channels_));
    // Several pairs add up their gradients, each of which a product overwrites.
    if (pairs_.size() > 1 && (weight_gradient_.wanted() || bias_gradient_.wanted()))
      sum_ =
          c.allocate(std::max(weight_gradient_.values(), bias_gradient_.values()) * sizeof(float));
  }

  void forward(const pass&) override {
    weights_ = turned_.turn(parameter_);
    for (const pair& p : pairs_) {
      if (transposed_) {
        products_.data_gradient(weights_, p.bottom.data, p.top.data);
      } else {
        products_.forward(p.bottom.data, weights_, p.top.data);
      }
      if (bias_ != nullptr)
        scale_channels(compute_, channels_, p.top.data, nullptr, bias_, p.top.data, relu_slope_);
    }
  }

  void backward(const pass&) override {
    // First, for it also makes the ReLU's gradient.
    add_up(bias_gradient_, [this](const pair& p, float* db) {
      if (!masks_)
        sum_channels(compute_, channels_, p.top.diff, db, scratch_.bytes());
      else
        sum_channels_of_relu(compute_, channels_, p.top.data, relu_slope_, p.top.diff, db,
                             scratch_.bytes());
    });
    add_up(weight_gradient_, [this](const pair& p, float* gradient) {
      const values dw = turned_.begin_gradient(gradient);
      if (transposed_) {
        products_.weight_gradient(p.top.diff, p.bottom.data, dw);
      } else {
        products_.weight_gradient(p.bottom.data, p.top.diff, dw);
      }
      turned_.end_gradient(gradient);
    });
    for (const pair& p : pairs_) {
      if (!p.backward_wanted) continue;
      if (transposed_) {
        products_.forward(p.top.diff, weights_, p.bottom.diff);
      } else {
        products_.data_gradient(weights_, p.top.diff, p.bottom.diff);
      }
    }
  }

 private:
  struct pair {
    const gpu_blob &bottom, &top;
    bool backward_wanted;
  };

  void take_relu(const layer_context& c) {
    relu_slope_ = c.take_relu(bias_gradient_.wanted());
    if (relu_slope_ == 1) return;
    const auto relu = relu_in_place_after(c.state.graph, c.index)->layer;
    const auto next = consumer(c.state.graph, c.layer.tops[0], relu);
    masks_ = !next || !is_max_pooling_of_relu(c.state.graph, *next);
  }

  convolution make_products(const layer_context& c) const {
    bool down = false;
    for (std::size_t i = 0; i < c.layer.bottoms.size(); ++i) down = down || c.wants_diff(i);
    convolution_directions wanted;
    wanted.forward = !transposed_ || down;
    wanted.data_gradient = transposed_ || down;
    wanted.weight_gradient = weight_gradient_.wanted();
    return {c.state.libraries, shape_, wanted};
  }

  /// The sum of write(pair, to) over the pairs.
  template <class Write>
  void add_up(gradient_slot& gradient, Write write) {
    if (!gradient.wanted()) return;
    float* to = gradient.begin();
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      write(pairs_[i], i == 0 ? to : sum_.floats());
      if (i > 0) add_scaled(compute_, gradient.values(), 1, to, 1, sum_.floats(), to);
    }
    gradient.end();
  }

  stream& compute_;
  bool transposed_;
  const float *parameter_, *bias_ = nullptr;
  float relu_slope_ = 1;
  bool masks_ = false;  // backward() is also the ReLU's
  gradient_slot weight_gradient_, bias_gradient_;
  convolution_shape shape_;
  convolution products_;
  turned_weights turned_;
  const_values weights_;  // as the products take them, since forward()
  channel_shape channels_;
  std::vector<pair> pairs_;
  device_memory sum_, scratch_;
};

}  // namespace

/// Groups gain nothing by plans of cuDNN, so they take what comes.
layout_option convolution_layout(const net& n, const net_layer& l) {
  if (n.blobs[l.bottoms[0]].shape.size() != 4) return layout_option::nchw;
  return l.spec.convolution_param().group() > 1 ? layout_option::as_bottom : layout_option::inside;
}

std::unique_ptr<kernel> make_convolution(const layer_context& c) {
  return std::make_unique<convolution_kernel>(c, false);
}

std::unique_ptr<kernel> make_deconvolution(const layer_context& c) {
  return std::make_unique<convolution_kernel>(c, true);
}

}  // namespace poseidon::gpu
