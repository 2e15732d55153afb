// cpu/layers/lstm_unit.cpp - LSTMUnit: one step of long short-term memory, from the state before and the sums at
// its four gates.
//
// Source   Hochreiter & Schmidhuber, Neural Computation 9 (1997); forget gates: Gers et al. (2000).
#include "cpu/layer.hpp"

#include <cmath>

namespace poseidon::cpu {
namespace {

float sigmoid(float x) {
  return 0.5f * std::tanh(0.5f * x) + 0.5f;
}

/// c = f c_before + i g and h = o tanh(c) with gates i, f, o = sigmoid and g = tanh of the four parts
/// of a row. A sequence that begins here (continues 0) forgets what was before.
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
      h_->data[at] = s.output * std::tanh(c_->data[at]);
    });
  }

  void backward(const pass&) override {
    float* d_before = d_before_.exists() ? d_before_.memory() : nullptr;
    float* d_sums = d_sums_.exists() ? d_sums_.memory() : nullptr;
    each([&](const gates& s, std::size_t at, std::size_t row) {
      const float t = std::tanh(c_->data[at]), dh = h_->diff[at];
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
        f({sigmoid(x[row]), forget, sigmoid(x[row + 2 * size_]), std::tanh(x[row + 3 * size_]),
           before[at]},
          at, row);
      }
    }
  }

  std::size_t rows_, size_;
  view before_, sums_, continues_, d_before_, d_sums_;
  cpu_blob *c_, *h_;
};

}  // namespace

std::unique_ptr<kernel> make_lstm_unit(const layer_context& c) {
  return std::make_unique<lstm_unit_kernel>(c);
}

}  // namespace poseidon::cpu
