// cpu/layers/pooling.cpp - the Pooling layer: MAX and AVE in the layout of its bottom.
#include "cpu/kernels/bf16_pool.hpp"
#include "cpu/layer.hpp"
#include "cpu/layers/sparse_convolution.hpp"

namespace poseidon::cpu {
namespace {

/// Planes of pixels in a layout: samples times blocks of channels.
std::size_t planes_of(const shape& s, layout form) {
  const image_extent e = image_of(s);
  return e.samples * places_of(form, e).blocks;
}

/// Planes of bfloat16, in whichever layout.
bf16_planes bf16_planes_of(const shape& s, layout form) {
  const image_extent e = image_of(s);
  return {places_of(form, e), e.samples, e.plane};
}

class ave_kernel final : public kernel {
 public:
  ave_kernel(const layer_context& c, const pool_shape& s)
      : shape_(s),
        planes_(planes_of(c.bottom_shape(0), c.bottom(0).form)),
        bf16_in_(bf16_planes_of(c.bottom_shape(0), c.bottom(0).form)),
        bf16_out_(bf16_planes_of(c.top_shape(0), c.bottom(0).form)),
        x_(c.bottom(0), part::data, c.bottom(0).form),
        y_(c.top(0), part::data, c.bottom(0).form) {
    if (!c.wants_diff(0)) return;
    dx_ = view(c.bottom(0), part::diff, c.bottom(0).form);
    dy_ = view(c.top(0), part::diff, c.bottom(0).form);
  }

  void forward(const pass&) override {
    const float* x = x_.load();
    float* y = y_.memory();
    switch (x_.form()) {
      case layout::plain:
        ave_pool_forward<1>(shape_, planes_, x, y);
        break;
      case layout::c8:
        ave_pool_forward<8>(shape_, planes_, x, y);
        break;
      case layout::c16:
        ave_pool_forward<16>(shape_, planes_, x, y);
        break;
      case layout::plain_bf16:
        ave_pool_forward<1>(shape_, bf16_in_, as<bfloat16>(x), bf16_out_, as<bfloat16>(y));
        break;
      case layout::c16_bf16:
      case layout::pixels_bf16:
        ave_pool_forward<16>(shape_, bf16_in_, as<bfloat16>(x), bf16_out_, as<bfloat16>(y));
        break;
    }
    y_.store();
  }

  void backward(const pass&) override {
    if (!dx_.exists()) return;
    const float* dy = dy_.load();
    float* dx = dx_.memory();
    switch (x_.form()) {
      case layout::plain:
        ave_pool_backward<1>(shape_, planes_, dy, dx);
        break;
      case layout::c8:
        ave_pool_backward<8>(shape_, planes_, dy, dx);
        break;
      case layout::c16:
        ave_pool_backward<16>(shape_, planes_, dy, dx);
        break;
      case layout::plain_bf16:
        ave_pool_backward<1>(shape_, bf16_out_, as<bfloat16>(dy), bf16_in_, as<bfloat16>(dx));
        break;
      case layout::c16_bf16:
      case layout::pixels_bf16:
        ave_pool_backward<16>(shape_, bf16_out_, as<bfloat16>(dy), bf16_in_, as<bfloat16>(dx));
        break;
    }
    dx_.store();
  }

 private:
  pool_shape shape_;
  std::size_t planes_;
  bf16_planes bf16_in_, bf16_out_;
  view x_, y_, dx_, dy_;
};

/// MAX on plain planes: also for windows of more than 256 values and for the mask top.
class plain_max_kernel final : public kernel {
 public:
  plain_max_kernel(const layer_context& c, const pool_shape& s)
      : shape_(s),
        planes_(planes_of(c.bottom_shape(0), layout::plain)),
        choice_(planes_ * s.out_plane()),
        x_(c.bottom(0), part::data, layout::plain),
        y_(c.top(0), part::data, layout::plain) {
    if (c.layer.tops.size() > 1) mask_ = view(c.top(1), part::data, layout::plain);
    if (!c.wants_diff(0)) return;
    dx_ = view(c.bottom(0), part::diff, layout::plain);
    dy_ = view(c.top(0), part::diff, layout::plain);
  }

  void forward(const pass&) override {
    max_pool_forward_plain(shape_, planes_, x_.load(), y_.memory(), choice_.data());
    y_.store();
    if (!mask_.exists()) return;
    float* mask = mask_.memory();
    for (std::size_t i = 0; i < choice_.size(); ++i) mask[i] = static_cast<float>(choice_[i]);
    mask_.store();
  }

  void backward(const pass&) override {
    if (!dx_.exists()) return;
    max_pool_backward_plain(shape_, planes_, dy_.load(), choice_.data(), dx_.memory());
    dx_.store();
  }

 private:
  pool_shape shape_;
  std::size_t planes_;
  std::vector<std::int32_t> choice_;
  view x_, y_, mask_, dx_, dy_;
};

/// T: the type of the values.
template <int Block, class T = float>
class blocked_max_kernel final : public kernel {
 public:
  blocked_max_kernel(const layer_context& c, const pool_shape& s)
      : shape_(s),
        planes_(planes_of(c.bottom_shape(0), c.bottom(0).form)),
        bf16_in_(bf16_planes_of(c.bottom_shape(0), c.bottom(0).form)),
        bf16_out_(bf16_planes_of(c.top_shape(0), c.bottom(0).form)),
        choice_(c.state.choices[c.index] ? c.state.choices[c.index]
                                         : std::make_shared<pooled_choice>()),
        x_(c.bottom(0), part::data, c.bottom(0).form),
        y_(c.top(0), part::data, c.bottom(0).form) {
    choice_->at.resize(planes_ * s.out_plane() * Block);
    if (!c.wants_diff(0) || c.state.backward_fused[c.index]) return;
    dx_ = view(c.bottom(0), part::diff, c.bottom(0).form);
    dy_ = view(c.top(0), part::diff, c.bottom(0).form);
  }

  void forward(const pass&) override {
    const T* x = as<T>(x_.load());
    T* y = as<T>(y_.memory());
    if constexpr (std::is_same_v<T, bfloat16>)
      max_pool_forward<Block>(shape_, bf16_in_, x, bf16_out_, y, choice_->at.data());
    else
      max_pool_forward<Block>(shape_, planes_, x, y, choice_->at.data());
    y_.store();
  }

  void backward(const pass&) override {
    if (!dx_.exists()) return;
    const T* dy = as<T>(dy_.load());
    T* dx = as<T>(dx_.memory());
    if constexpr (std::is_same_v<T, bfloat16>)
      max_pool_backward<Block>(shape_, bf16_out_, dy, choice_->at.data(), bf16_in_, dx);
    else
      max_pool_backward<Block>(shape_, planes_, dy, choice_->at.data(), dx);
    dx_.store();
  }

 private:
  pool_shape shape_;
  std::size_t planes_;
  bf16_planes bf16_in_, bf16_out_;
  std::shared_ptr<pooled_choice> choice_;
  view x_, y_, dx_, dy_;
};

}  // namespace

std::unique_ptr<kernel> make_pooling(const layer_context& c) {
  const auto& p = c.layer.spec.pooling_param();
  if (c.bottom_shape(0).size() != 4) {
    c.refuse("pooling wants a bottom of 4 axes, this one is " + to_string(c.bottom_shape(0)) + ".");
  }
  const pool_shape s = resolve_pooling(c.layer, c.bottom_shape(0), c.top_shape(0));
  if (p.pool() == ::caffe::PoolingParameter::STOCHASTIC) return make_stochastic_pooling(c);
  if (p.pool() == ::caffe::PoolingParameter::AVE) return std::make_unique<ave_kernel>(c, s);
  const layout form = c.bottom(0).form;
  if (block_of(form) == 1 || c.layer.tops.size() > 1 || s.kernel_h * s.kernel_w > 256) {
    return std::make_unique<plain_max_kernel>(c, s);
  }
  if (form == layout::c8) return std::make_unique<blocked_max_kernel<8>>(c, s);
  if (is_bf16(form)) return std::make_unique<blocked_max_kernel<16, bfloat16>>(c, s);
  return std::make_unique<blocked_max_kernel<16>>(c, s);
}

}  // namespace poseidon::cpu
