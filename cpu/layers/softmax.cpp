#include "cpu/layers/softmax.hpp"

#include "cpu/layer.hpp"

#include <algorithm>
#include <cmath>

namespace poseidon::cpu {
namespace {

class softmax_kernel final : public kernel {
 public:
  explicit softmax_kernel(const layer_context& c)
      : axis_(split_at(c.bottom_shape(0), c.layer.spec.softmax_param().axis())),
        x_(c.bottom(0), part::data, layout::plain),
        y_(c.top(0), part::data, layout::plain) {
    if (!c.wants_diff(0)) return;
    dx_ = view(c.bottom(0), part::diff, layout::plain);
    dy_ = view(c.top(0), part::diff, layout::plain);
  }

  void forward(const pass&) override {
    softmax_forward(axis_, x_.load(), y_.memory());
    y_.store();
  }

  /// dx = y (dy - sum(dy y))
  void backward(const pass&) override {
    if (!dx_.exists()) return;
    const float* y = y_.load();
    const float* dy = dy_.load();
    float* dx = dx_.memory();
    for (std::size_t o = 0; o < axis_.outer; ++o) {
      for (std::size_t i = 0; i < axis_.inner; ++i) {
        const std::size_t first = o * axis_.size * axis_.inner + i;
        float dot = 0;
        for (std::size_t k = 0; k < axis_.size; ++k) {
          dot += dy[first + k * axis_.inner] * y[first + k * axis_.inner];
        }
        for (std::size_t k = 0; k < axis_.size; ++k) {
          const std::size_t at = first + k * axis_.inner;
          dx[at] = (dy[at] - dot) * y[at];
        }
      }
    }
    dx_.store();
  }

 private:
  along_axis axis_;
  view x_, y_, dx_, dy_;
};

}  // namespace

void softmax_forward(const along_axis& a, const float* x, float* y) {
  for (std::size_t o = 0; o < a.outer; ++o) {
    for (std::size_t i = 0; i < a.inner; ++i) {
      const std::size_t first = o * a.size * a.inner + i;
      float largest = x[first];
      for (std::size_t k = 1; k < a.size; ++k) largest = std::max(largest, x[first + k * a.inner]);
      float sum = 0;
      for (std::size_t k = 0; k < a.size; ++k) {
        const std::size_t at = first + k * a.inner;
        y[at] = std::exp(x[at] - largest);
        sum += y[at];
      }
      for (std::size_t k = 0; k < a.size; ++k) y[first + k * a.inner] /= sum;
    }
  }
}

std::unique_ptr<kernel> make_softmax(const layer_context& c) {
  return std::make_unique<softmax_kernel>(c);
}

}  // namespace poseidon::cpu
