// gpu/layers/convolution.cpp
//
// Convolution and Deconvolution as products of the library. A deconvolution is the data gradient of a convolution
// whose images are its top, so the same three products serve both, with bottoms and tops exchanged.
#include "gpu/kernels/channels.hpp"
#include "gpu/kernels/elementwise.hpp"
#include "gpu/layers/layers.hpp"

#include <stdexcept>

namespace poseidon::gpu {
namespace {

convolution_shape resolve(const layer_context& c, bool transposed) {
  try {
    const shape &bottom = c.bottom_shape(0), &top = c.top_shape(0);
    return transposed ? resolve_convolution(c.layer, top, bottom)
                      : resolve_convolution(c.layer, bottom, top);
  } catch (const std::invalid_argument& e) {
    c.refuse(e.what());
  }
}

class convolution_kernel final : public kernel {
 public:
  convolution_kernel(const layer_context& c, bool transposed)
      : compute_(c.compute()),
        transposed_(transposed),
        weights_(c.parameter(0)),
        weight_gradient_(c.gradient(0)),
        products_(make_products(c)) {
    if (c.layer.spec.convolution_param().bias_term()) {
      bias_ = c.parameter(1);
      bias_gradient_ = c.gradient(1);
    }
    const shape& top = c.top_shape(0);
    channels_ = {static_cast<std::size_t>(top[0]), static_cast<std::size_t>(top[1]),
                 static_cast<std::size_t>(count(top, 2, top.size()))};
    for (std::size_t i = 0; i < c.layer.bottoms.size(); ++i)
      pairs_.push_back({c.bottom(i), c.top(i), c.wants_diff(i)});
    // Several pairs add up their gradients, each of which a product overwrites.
    if (pairs_.size() > 1 && (weight_gradient_.wanted() || bias_gradient_.wanted()))
      sum_ =
          c.allocate(std::max(weight_gradient_.values(), bias_gradient_.values()) * sizeof(float));
  }

  void forward(const pass&) override {
    for (const pair& p : pairs_) {
      if (transposed_) {
        products_.data_gradient(weights_, p.bottom.data, p.top.data);
      } else {
        products_.forward(p.bottom.data, weights_, p.top.data);
      }
      if (bias_ != nullptr)
        scale_channels(compute_, channels_, p.top.data, nullptr, bias_, p.top.data);
    }
  }

  void backward(const pass&) override {
    add_up(weight_gradient_, [this](const pair& p, float* dw) {
      if (transposed_) {
        products_.weight_gradient(p.top.diff, p.bottom.data, dw);
      } else {
        products_.weight_gradient(p.bottom.data, p.top.diff, dw);
      }
    });
    add_up(bias_gradient_,
           [this](const pair& p, float* db) { sum_channels(compute_, channels_, p.top.diff, db); });
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

  convolution make_products(const layer_context& c) const {
    bool down = false;
    for (std::size_t i = 0; i < c.layer.bottoms.size(); ++i) down = down || c.wants_diff(i);
    convolution_directions wanted;
    wanted.forward = !transposed_ || down;
    wanted.data_gradient = transposed_ || down;
    wanted.weight_gradient = weight_gradient_.wanted();
    return {c.state.libraries, resolve(c, transposed_), wanted};
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
  const float *weights_, *bias_ = nullptr;
  gradient_slot weight_gradient_, bias_gradient_;
  convolution products_;
  channel_shape channels_;
  std::vector<pair> pairs_;
  device_memory sum_;
};

}  // namespace

std::unique_ptr<kernel> make_convolution(const layer_context& c) {
  return std::make_unique<convolution_kernel>(c, false);
}

std::unique_ptr<kernel> make_deconvolution(const layer_context& c) {
  return std::make_unique<convolution_kernel>(c, true);
}

}  // namespace poseidon::gpu
