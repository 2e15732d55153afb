// gpu/layers/pooling.cpp - Pooling: MAX, AVE and STOCHASTIC.
#include "gpu/kernels/pooling.hpp"

#include "gpu/kernels/elementwise.hpp"
#include "gpu/layers/layers.hpp"
#include "models/net/fusion.hpp"

namespace poseidon::gpu {
namespace {

using pooling = ::caffe::PoolingParameter;

class pooling_kernel final : public kernel {
 public:
  explicit pooling_kernel(const layer_context& c)
      : compute_(c.compute()),
        layer_(static_cast<std::uint32_t>(c.index)),
        how_(c.layer.spec.pooling_param().pool()),
        draws_(how_ == pooling::STOCHASTIC && c.training()),
        shape_(resolve_pooling(c.layer, c.bottom_shape(0), c.top_shape(0))),
        samples_(static_cast<std::size_t>(c.bottom_shape(0)[0])),
        channels_(static_cast<std::size_t>(c.bottom_shape(0)[1])),
        planes_(channels_last(c.order()) ? pool_planes{samples_, channels_}
                                         : pool_planes{samples_ * channels_, 1}),
        bottom_(c.bottom(0)),
        top_(c.top(0)),
        mask_(c.layer.tops.size() > 1 ? &c.top(1) : nullptr),
        backward_wanted_(c.wants_diff(0)),
        behind_relu_(!c.state.options.keep_all_diffs &&
                     is_max_pooling_of_relu(c.state.graph, c.index)) {
    if (how_ == pooling::STOCHASTIC && !draws_ && backward_wanted_)
      c.refuse("STOCHASTIC pooling has a gradient in TRAIN only.");
    if (how_ == pooling::MAX || draws_) choice_ = c.allocate(top_.values() * sizeof(std::int32_t));
  }

  void forward(const pass& p) override {
    if (how_ == pooling::AVE) {
      ave_pool(compute_, shape_, planes_, bottom_.data, top_.data);
    } else if (how_ == pooling::MAX) {
      max_pool(compute_, shape_, planes_, bottom_.data, top_.data, choice(), behind_relu_);
      if (mask_ != nullptr) to_floats(compute_, top_.values(), choice(), mask_->data);
    } else if (draws_) {
      draw_pool(compute_, {p.seed, p.first_sample, layer_}, shape_, samples_, channels_,
                bottom_.data, top_.data, choice());
    } else {
      weighted_pool(compute_, shape_, planes_, bottom_.data, top_.data);
    }
  }

  void backward(const pass&) override {
    if (!backward_wanted_) return;
    if (how_ == pooling::AVE) {
      ave_pool_backward(compute_, shape_, planes_, top_.diff, bottom_.diff);
    } else {
      spread_to_choice(compute_, shape_, planes_, choice(), top_.diff, bottom_.diff);
    }
  }

 private:
  [[nodiscard]] std::int32_t* choice() const {
    return reinterpret_cast<std::int32_t*>(choice_.bytes());
  }

  stream& compute_;
  std::uint32_t layer_;
  pooling::PoolMethod how_;
  bool draws_;
  pool_shape shape_;
  std::size_t samples_, channels_;
  pool_planes planes_;
  const gpu_blob &bottom_, &top_;
  const gpu_blob* mask_;
  bool backward_wanted_;
  bool behind_relu_;  // its gradient is this one's, where that goes to positive values only
  device_memory choice_;
};

}  // namespace

/// STOCHASTIC draws by the place in NCHW. A second top holds places, which are no images.
layout_option pooling_layout(const net&, const net_layer& l) {
  const bool drawn = l.spec.pooling_param().pool() == pooling::STOCHASTIC;
  return drawn || l.tops.size() > 1 ? layout_option::nchw : layout_option::as_bottom;
}

std::unique_ptr<kernel> make_pooling(const layer_context& c) {
  if (c.bottom_shape(0).size() != 4)
    c.refuse("pooling wants a bottom of 4 axes, this one is " + to_string(c.bottom_shape(0)) + ".");
  return std::make_unique<pooling_kernel>(c);
}

}  // namespace poseidon::gpu
