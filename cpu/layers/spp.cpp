// cpu/layers/spp.cpp - SPP, spatial pyramid pooling: the image pooled into 1, 2x2, 4x4 ... bins, all of them
// in one row, so that its length does not depend on the image's size.
#include "cpu/kernels/ave_pool.hpp"
#include "cpu/kernels/max_pool.hpp"
#include "cpu/layer.hpp"
#include "models/net/pyramid.hpp"

#include <algorithm>

namespace poseidon::cpu {
namespace {

class spp_kernel final : public kernel {
 public:
  explicit spp_kernel(const layer_context& c)
      : is_max_(c.layer.spec.spp_param().pool() == ::caffe::SPPParameter::MAX),
        samples_(static_cast<std::size_t>(c.bottom_shape(0)[0])),
        channels_(static_cast<std::size_t>(c.bottom_shape(0)[1])),
        x_(c.bottom(0), part::data, layout::plain),
        y_(c.top(0), part::data, layout::plain) {
    const std::int64_t height = c.bottom_shape(0)[2], width = c.bottom_shape(0)[3];
    for (std::int64_t l = 0; l < c.layer.spec.spp_param().pyramid_height(); ++l) {
      const pyramid_axis h = pyramid_axis_of(height, l), w = pyramid_axis_of(width, l);
      const auto as = [](std::int64_t v) { return static_cast<int>(v); };
      const pool_shape s{as(height),   as(width),    as(h.out),    as(w.out), as(h.kernel),
                         as(w.kernel), as(h.kernel), as(w.kernel), as(h.pad), as(w.pad)};
      levels_.push_back({s, row_, std::vector<std::int32_t>(samples_ * channels_ * s.out_plane())});
      row_ += channels_ * s.out_plane();
    }
    image_ = channels_ * static_cast<std::size_t>(height * width);
    if (!c.wants_diff(0)) return;
    of_level_ = buffer(image_);
    dx_ = view(c.bottom(0), part::diff, layout::plain);
    dy_ = view(c.top(0), part::diff, layout::plain);
  }

  void forward(const pass&) override {
    const float* x = x_.load();
    float* y = y_.memory();
    for (std::size_t n = 0; n < samples_; ++n, x += image_, y += row_) {
      for (level& l : levels_) {
        if (is_max_) {
          max_pool_forward_plain(l.windows, channels_, x, y + l.first, l.choices_of(n, channels_));
        } else {
          ave_pool_forward<1>(l.windows, channels_, x, y + l.first);
        }
      }
    }
    y_.store();
  }

  void backward(const pass&) override {
    if (!dx_.exists()) return;
    const float* dy = dy_.load();
    float* dx = dx_.memory();
    std::fill_n(dx, samples_ * image_, 0.0f);
    for (std::size_t n = 0; n < samples_; ++n, dx += image_, dy += row_) {
      for (level& l : levels_) {
        if (is_max_) {
          max_pool_backward_plain(l.windows, channels_, dy + l.first, l.choices_of(n, channels_),
                                  of_level_.data());
        } else {
          ave_pool_backward<1>(l.windows, channels_, dy + l.first, of_level_.data());
        }
        for (std::size_t i = 0; i < image_; ++i) dx[i] += of_level_.data()[i];
      }
    }
    dx_.store();
  }

 private:
  struct level {
    pool_shape windows;
    std::size_t first;  ///< its place in the row of a sample
    std::vector<std::int32_t> choices;
    [[nodiscard]] std::int32_t* choices_of(std::size_t sample, std::size_t channels) {
      return choices.data() + sample * channels * windows.out_plane();
    }
  };

  bool is_max_;
  std::size_t samples_, channels_, row_ = 0, image_ = 0;
  std::vector<level> levels_;
  buffer of_level_;
  view x_, y_, dx_, dy_;
};

}  // namespace

std::unique_ptr<kernel> make_spp(const layer_context& c) {
  if (c.layer.spec.spp_param().pool() == ::caffe::SPPParameter::STOCHASTIC) {
    c.refuse("its windows reach into padding, which pool: STOCHASTIC cannot. Choose MAX or AVE.");
  }
  return std::make_unique<spp_kernel>(c);
}

}  // namespace poseidon::cpu
