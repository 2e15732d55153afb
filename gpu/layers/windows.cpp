// gpu/layers/windows.cpp - Im2col, SPP and LSTMUnit.
#include "gpu/kernels/windows.hpp"

#include "gpu/kernels/copies.hpp"
#include "gpu/kernels/elementwise.hpp"
#include "gpu/kernels/pooling.hpp"
#include "gpu/layers/convolution_shape.hpp"
#include "gpu/layers/layers.hpp"
#include "models/net/convolution_windows.hpp"
#include "models/net/pyramid.hpp"

namespace poseidon::gpu {
namespace {

/// The values under a convolution's windows, as a blob.
class im2col_kernel final : public kernel {
 public:
  explicit im2col_kernel(const layer_context& c)
      : compute_(c.compute()),
        bottom_(c.bottom(0)),
        top_(c.top(0)),
        backward_wanted_(c.wants_diff(0)) {
    require_convolvable(c.layer, c.bottom_shape(0), "GPU");
    windows_ = resolve_convolution(c.layer, c.bottom_shape(0), c.top_shape(0));
    planes_ = static_cast<std::size_t>(windows_.batch * windows_.in);
  }
  void forward(const pass&) override {
    spread_windows(compute_, windows_, planes_, bottom_.data, top_.data);
  }
  void backward(const pass&) override {
    if (backward_wanted_) gather_windows(compute_, windows_, planes_, top_.diff, bottom_.diff);
  }

 private:
  stream& compute_;
  const gpu_blob &bottom_, &top_;
  bool backward_wanted_;
  convolution_shape windows_;
  std::size_t planes_ = 0;
};

/// The image pooled into 1, 2x2, 4x4 ... bins, all of them in one row, so that its length does not depend on the
/// image's size. Each level is pooled into memory of its own and moved from there.
class spp_kernel final : public kernel {
 public:
  explicit spp_kernel(const layer_context& c)
      : compute_(c.compute()),
        is_max_(c.layer.spec.spp_param().pool() == ::caffe::SPPParameter::MAX),
        samples_(static_cast<std::size_t>(c.bottom_shape(0)[0])),
        channels_(static_cast<std::size_t>(c.bottom_shape(0)[1])),
        bottom_(c.bottom(0)),
        top_(c.top(0)),
        backward_wanted_(c.wants_diff(0)) {
    const std::int64_t height = c.bottom_shape(0)[2], width = c.bottom_shape(0)[3];
    const auto as = [](std::int64_t v) { return static_cast<int>(v); };
    for (std::int64_t l = 0; l < c.layer.spec.spp_param().pyramid_height(); ++l) {
      const pyramid_axis h = pyramid_axis_of(height, l), w = pyramid_axis_of(width, l);
      const pool_shape s{.height = as(height),
                         .width = as(width),
                         .out_height = as(h.out),
                         .out_width = as(w.out),
                         .kernel_h = as(h.kernel),
                         .kernel_w = as(w.kernel),
                         .stride_h = as(h.kernel),
                         .stride_w = as(w.kernel),
                         .pad_h = as(h.pad),
                         .pad_w = as(w.pad)};
      const std::size_t values = samples_ * channels_ * s.out_plane();
      levels_.push_back({s, row_, c.allocate(values * sizeof(float)),
                         is_max_ ? c.allocate(values * sizeof(std::int32_t)) : device_memory{}});
      row_ += channels_ * s.out_plane();
    }
    if (backward_wanted_) of_level_ = c.allocate(bottom_.values() * sizeof(float));
  }

  void forward(const pass&) override {
    const pool_planes planes{samples_ * channels_, 1};
    for (const level& l : levels_) {
      if (is_max_) {
        max_pool(compute_, l.windows, planes, bottom_.data, l.bins.floats(), l.choices());
      } else {
        ave_pool(compute_, l.windows, planes, bottom_.data, l.bins.floats());
      }
      const std::size_t length = channels_ * l.windows.out_plane();
      copy_runs(compute_, {samples_, length, length, row_}, l.bins.floats(), top_.data + l.first);
    }
  }

  void backward(const pass&) override {
    if (!backward_wanted_) return;
    const pool_planes planes{samples_ * channels_, 1};
    for (const level& l : levels_) {
      const std::size_t length = channels_ * l.windows.out_plane();
      copy_runs(compute_, {samples_, length, row_, length}, top_.diff + l.first, l.bins.floats());
      const values to = &l == &levels_.front() ? bottom_.diff : values(of_level_.floats());
      if (is_max_) {
        spread_to_choice(compute_, l.windows, planes, l.choices(), l.bins.floats(), to);
      } else {
        ave_pool_backward(compute_, l.windows, planes, l.bins.floats(), to);
      }
      if (to != bottom_.diff)
        add_scaled(compute_, bottom_.values(), 1, bottom_.diff, 1, to, bottom_.diff);
    }
  }

 private:
  struct level {
    pool_shape windows;
    std::size_t first;  ///< its place in the row of a sample
    device_memory bins, chosen;
    [[nodiscard]] std::int32_t* choices() const {
      return reinterpret_cast<std::int32_t*>(chosen.bytes());
    }
  };

  stream& compute_;
  bool is_max_;
  std::size_t samples_, channels_, row_ = 0;
  const gpu_blob &bottom_, &top_;
  bool backward_wanted_;
  std::vector<level> levels_;
  device_memory of_level_;
};

class lstm_unit_kernel final : public kernel {
 public:
  explicit lstm_unit_kernel(const layer_context& c)
      : compute_(c.compute()),
        shape_{static_cast<std::size_t>(c.bottom_shape(0)[1]),
               static_cast<std::size_t>(c.bottom_shape(0)[2])},
        before_(c.bottom(0)),
        sums_(c.bottom(1)),
        continues_(c.bottom(2)),
        c_(c.top(0)),
        h_(c.top(1)),
        d_before_(c.wants_diff(0) ? before_.diff : nullptr),
        d_sums_(c.wants_diff(1) ? sums_.diff : nullptr) {
    c.require_no_gradient(2, "where sequences begin");
  }
  void forward(const pass&) override {
    lstm_unit(compute_, shape_, before_.data, sums_.data, continues_.data, c_.data, h_.data);
  }
  void backward(const pass&) override {
    lstm_unit_backward(compute_, shape_, before_.data, sums_.data, continues_.data, c_.data,
                       c_.diff, h_.diff, d_before_, d_sums_);
  }

 private:
  stream& compute_;
  lstm_shape shape_;
  const gpu_blob &before_, &sums_, &continues_, &c_, &h_;
  float *d_before_, *d_sums_;
};

}  // namespace

std::unique_ptr<kernel> make_im2col(const layer_context& c) {
  return std::make_unique<im2col_kernel>(c);
}

std::unique_ptr<kernel> make_spp(const layer_context& c) {
  if (c.layer.spec.spp_param().pool() == ::caffe::SPPParameter::STOCHASTIC)
    c.refuse("its windows reach into padding, which pool: STOCHASTIC cannot. Choose MAX or AVE.");
  return std::make_unique<spp_kernel>(c);
}

std::unique_ptr<kernel> make_lstm_unit(const layer_context& c) {
  return std::make_unique<lstm_unit_kernel>(c);
}

}  // namespace poseidon::gpu
