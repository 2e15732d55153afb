// cpu/layers/pooling.cpp - the Pooling layer: MAX and AVE in the layout of its bottom.
#include "cpu/kernels/ave_pool.hpp"
#include "cpu/kernels/bf16_pool.hpp"
#include "cpu/kernels/max_pool.hpp"
#include "cpu/layer.hpp"
#include "cpu/layers/sparse_convolution.hpp"

namespace poseidon::cpu {
namespace {

/// Planes of pixels in a layout: samples times blocks of channels.
std::size_t planes_of(const shape& s, layout form) {
  const image_extent e = image_of(s);
  return e.samples * places_of(form, e).blocks;
}

/// In which AVE works: the bottom's, but for plain bfloat16, which no kernel here reads.
layout ave_form_of(const layer_context& c) {
  const layout form = c.bottom(0).form;
  return is_bf16(form) && block_of(form) == 1 ? layout::plain : form;
}

bf16_images images_of(const shape& s, layout form) {
  const image_extent e = image_of(s);
  return {places_of(form, e), e.samples};
}

class ave_kernel final : public kernel {
 public:
  ave_kernel(const layer_context& c, const pool_shape& s)
      : shape_(s),
        planes_(planes_of(c.bottom_shape(0), ave_form_of(c))),
        in_(images_of(c.bottom_shape(0), ave_form_of(c))),
        out_(images_of(c.top_shape(0), ave_form_of(c))),
        x_(c.bottom(0), part::data, ave_form_of(c)),
        y_(c.top(0), part::data, ave_form_of(c)) {
    if (!c.wants_diff(0)) return;
    dx_ = view(c.bottom(0), part::diff, ave_form_of(c));
    dy_ = view(c.top(0), part::diff, ave_form_of(c));
  }

  void forward(const pass&) override {
    const float* x = x_.load();
    float* y = y_.memory();
    if (is_bf16(x_.form()))
      ave_pool_forward(shape_, in_, as<bfloat16>(x), out_, as<bfloat16>(y));
    else if (block_of(x_.form()) == 1)
      ave_pool_forward<1>(shape_, planes_, x, y);
    else if (block_of(x_.form()) == 8)
      ave_pool_forward<8>(shape_, planes_, x, y);
    else
      ave_pool_forward<16>(shape_, planes_, x, y);
    y_.store();
  }

  void backward(const pass&) override {
    if (!dx_.exists()) return;
    const float* dy = dy_.load();
    float* dx = dx_.memory();
    if (is_bf16(x_.form()))
      ave_pool_backward(shape_, out_, as<bfloat16>(dy), in_, as<bfloat16>(dx));
    else if (block_of(x_.form()) == 1)
      ave_pool_backward<1>(shape_, planes_, dy, dx);
    else if (block_of(x_.form()) == 8)
      ave_pool_backward<8>(shape_, planes_, dy, dx);
    else
      ave_pool_backward<16>(shape_, planes_, dy, dx);
    dx_.store();
  }

 private:
  pool_shape shape_;
  std::size_t planes_;
  bf16_images in_, out_;
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

template <int Block>
class blocked_max_kernel final : public kernel {
 public:
  blocked_max_kernel(const layer_context& c, const pool_shape& s)
      : shape_(s),
        planes_(planes_of(c.bottom_shape(0), c.bottom(0).form)),
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
    max_pool_forward<Block>(shape_, planes_, x_.load(), y_.memory(), choice_->at.data());
    y_.store();
  }

  void backward(const pass&) override {
    if (!dx_.exists()) return;
    max_pool_backward<Block>(shape_, planes_, dy_.load(), choice_->at.data(), dx_.memory());
    dx_.store();
  }

 private:
  pool_shape shape_;
  std::size_t planes_;
  std::shared_ptr<pooled_choice> choice_;
  view x_, y_, dx_, dy_;
};

/// MAX over bfloat16 in blocks of channels, or in pixels.
class bf16_max_kernel final : public kernel {
 public:
  bf16_max_kernel(const layer_context& c, const pool_shape& s)
      : shape_(s),
        in_(images_of(c.bottom_shape(0), c.bottom(0).form)),
        out_(images_of(c.top_shape(0), c.bottom(0).form)),
        choice_(stored_size(c.top_shape(0), c.bottom(0).form)),
        x_(c.bottom(0), part::data, c.bottom(0).form),
        y_(c.top(0), part::data, c.bottom(0).form) {
    if (!c.wants_diff(0)) return;
    dx_ = view(c.bottom(0), part::diff, c.bottom(0).form);
    dy_ = view(c.top(0), part::diff, c.bottom(0).form);
  }

  void forward(const pass&) override {
    const auto* x = as<bfloat16>(x_.load());
    max_pool_forward(shape_, in_, x, out_, as<bfloat16>(y_.memory()), choice_.data());
    y_.store();
  }

  void backward(const pass&) override {
    if (!dx_.exists()) return;
    const auto* dy = as<bfloat16>(dy_.load());
    max_pool_backward(shape_, out_, dy, choice_.data(), in_, as<bfloat16>(dx_.memory()));
    dx_.store();
  }

 private:
  pool_shape shape_;
  bf16_images in_, out_;
  std::vector<std::uint8_t> choice_;
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
  if (is_bf16(form)) return std::make_unique<bf16_max_kernel>(c, s);
  return std::make_unique<blocked_max_kernel<16>>(c, s);
}

}  // namespace poseidon::cpu
