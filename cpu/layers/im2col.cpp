// cpu/layers/im2col.cpp - Im2col: the windows of a convolution as columns, for any number of spatial axes.
#include "cpu/convolution_shape.hpp"
#include "cpu/layer.hpp"

#include <algorithm>

namespace poseidon::cpu {
namespace {

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

}  // namespace

std::unique_ptr<kernel> make_im2col(const layer_context& c) {
  return std::make_unique<im2col_kernel>(c);
}

}  // namespace poseidon::cpu
