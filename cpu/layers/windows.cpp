// cpu/layers/windows.cpp - Im2col, SPP and LSTMUnit.
//
// Source   LSTMUnit: Hochreiter & Schmidhuber, Neural Computation 9 (1997); forget gates: Gers et al. (2000).
#include "cpu/convolution_shape.hpp"
#include "cpu/kernels/ave_pool.hpp"
#include "cpu/kernels/max_pool.hpp"
#include "cpu/layer.hpp"
#include "models/net/hyperbolic_tangent.hpp"
#include "models/net/pyramid.hpp"

#include <algorithm>
#include <cmath>

namespace poseidon::cpu {
namespace {

/// Im2col: the windows of a convolution as columns, for any number of spatial axes.
class im2col_kernel final : public kernel {
 public:
  explicit im2col_kernel(const layer_context& c)
      : window_(resolve_convolution(c.layer, c.bottom_shape(0))),
        x_(c.bottom(0), part::data, layout::plain),
        y_(c.top(0), part::data, layout::plain) {
    const std::size_t first = c.bottom_shape(0).size() - window_.axes();  // spatial axis
    in_.assign(c.bottom_shape(0).begin() + static_cast<std::ptrdiff_t>(first),
               c.bottom_shape(0).end());
    out_.assign(c.top_shape(0).begin() + static_cast<std::ptrdiff_t>(first), c.top_shape(0).end());
    planes_ = static_cast<std::size_t>(count(c.bottom_shape(0), 0, first));
    size_ = c.bottom(0).values();
    if (!c.wants_diff(0)) return;
    dx_ = view(c.bottom(0), part::diff, layout::plain);
    dy_ = view(c.top(0), part::diff, layout::plain);
  }

  void forward(const pass&) override {
    const float* x = x_.load();
    float* y = y_.memory();
    each_value(
        [&](std::size_t at, std::size_t from, bool inside) { y[at] = inside ? x[from] : 0; });
    y_.store();
  }

  void backward(const pass&) override {
    if (!dx_.exists()) return;
    const float* dy = dy_.load();
    float* dx = dx_.memory();
    std::fill_n(dx, size_, 0.0f);
    each_value([&](std::size_t at, std::size_t to, bool inside) {
      if (inside) dx[to] += dy[at];
    });
    dx_.store();
  }

 private:
  using places = std::vector<std::int64_t>;

  /// The next place within `extents`, the last axis fastest; false after the last one.
  static bool advance(places& p, const dnnl::memory::dims& extents) {
    for (std::size_t a = p.size(); a-- > 0;) {
      if (++p[a] < extents[a]) return true;
      p[a] = 0;
    }
    return false;
  }

  /// Calls f(place in the top, place in the bottom, is that inside the image) for each value of the
  /// top, in its order: image and channel, tap of the window, window.
  template <class F>
  void each_value(F f) const {
    std::size_t at = 0;
    const auto plane = static_cast<std::size_t>(count(in_));
    for (std::size_t p = 0; p < planes_; ++p) {
      places tap(in_.size(), 0);
      do {
        places window(in_.size(), 0);
        do {
          bool inside = true;
          std::int64_t from = 0;
          for (std::size_t a = 0; a < in_.size(); ++a) {
            const std::int64_t i =
                window[a] * window_.stride[a] - window_.pad[a] + tap[a] * window_.dilation[a];
            inside = inside && i >= 0 && i < in_[a];
            from = from * in_[a] + i;
          }
          f(at++, inside ? p * plane + static_cast<std::size_t>(from) : 0, inside);
        } while (advance(window, out_));
      } while (advance(tap, window_.kernel));
    }
  }

  convolution_shape window_;
  shape in_, out_;  // spatial extents
  std::size_t planes_ = 0, size_ = 0;
  view x_, y_, dx_, dy_;
};

/// Spatial pyramid pooling: the image pooled into 1, 2x2, 4x4 ... bins, all of them in one row, so that its length
/// does not depend on the image's size.
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

float sigmoid(float x) {
  return 0.5f * hyperbolic_tangent(0.5f * x) + 0.5f;
}

/// One step of long short-term memory, from the state before and the sums at its four gates:
/// c = f c_before + i g and h = o tanh(c) with gates i, f, o = sigmoid and g = tanh of the four parts
/// of a row. A sequence that begins here (continues 0) has no state before.
class lstm_unit_kernel final : public kernel {
 public:
  explicit lstm_unit_kernel(const layer_context& c)
      : rows_(static_cast<std::size_t>(c.bottom_shape(0)[1])),
        size_(static_cast<std::size_t>(c.bottom_shape(0)[2])),
        before_(c.bottom(0), part::data, layout::plain),
        sums_(c.bottom(1), part::data, layout::plain),
        continues_(c.bottom(2), part::data, layout::plain),
        c_(&c.top(0)),
        h_(&c.top(1)) {
    c.require_no_gradient(2, "where sequences begin");
    if (c.wants_diff(0)) d_before_ = view(c.bottom(0), part::diff, layout::plain);
    if (c.wants_diff(1)) d_sums_ = view(c.bottom(1), part::diff, layout::plain);
  }

  void forward(const pass&) override {
    each([&](const gates& s, std::size_t at, std::size_t) {
      c_->data[at] = s.forget * s.before + s.input * s.candidate;
      h_->data[at] = s.output * hyperbolic_tangent(c_->data[at]);
    });
  }

  void backward(const pass&) override {
    float* d_before = d_before_.exists() ? d_before_.memory() : nullptr;
    float* d_sums = d_sums_.exists() ? d_sums_.memory() : nullptr;
    each([&](const gates& s, std::size_t at, std::size_t row) {
      const float t = hyperbolic_tangent(c_->data[at]), dh = h_->diff[at];
      const float dc = c_->diff[at] + dh * s.output * (1 - t * t);
      if (d_before != nullptr) d_before[at] = dc * s.forget;
      if (d_sums == nullptr) return;
      d_sums[row] = dc * s.candidate * s.input * (1 - s.input);
      d_sums[row + size_] = dc * s.before * s.forget * (1 - s.forget);
      d_sums[row + 2 * size_] = dh * t * s.output * (1 - s.output);
      d_sums[row + 3 * size_] = dc * s.input * (1 - s.candidate * s.candidate);
    });
    if (d_before != nullptr) d_before_.store();
    if (d_sums != nullptr) d_sums_.store();
  }

 private:
  struct gates {
    float input, forget, output, candidate, before;
  };

  /// Calls f(gates, place in the state, place in the sums) for every cell.
  template <class F>
  void each(F f) {
    const float *before = before_.load(), *x = sums_.load(), *continues = continues_.load();
    for (std::size_t n = 0; n < rows_; ++n) {
      for (std::size_t d = 0; d < size_; ++d) {
        const std::size_t at = n * size_ + d, row = 4 * n * size_ + d;
        const float forget = continues[n] == 0 ? 0 : continues[n] * sigmoid(x[row + size_]);
        f({sigmoid(x[row]), forget, sigmoid(x[row + 2 * size_]),
           hyperbolic_tangent(x[row + 3 * size_]), before[at]},
          at, row);
      }
    }
  }

  std::size_t rows_, size_;
  view before_, sums_, continues_, d_before_, d_sums_;
  cpu_blob *c_, *h_;
};

}  // namespace

std::unique_ptr<kernel> make_im2col(const layer_context& c) {
  return std::make_unique<im2col_kernel>(c);
}

std::unique_ptr<kernel> make_spp(const layer_context& c) {
  if (c.layer.spec.spp_param().pool() == ::caffe::SPPParameter::STOCHASTIC) {
    c.refuse("its windows reach into padding, which pool: STOCHASTIC cannot. Choose MAX or AVE.");
  }
  return std::make_unique<spp_kernel>(c);
}

std::unique_ptr<kernel> make_lstm_unit(const layer_context& c) {
  return std::make_unique<lstm_unit_kernel>(c);
}

}  // namespace poseidon::cpu
