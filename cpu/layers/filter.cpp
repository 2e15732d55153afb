// cpu/layers/filter.cpp - Filter: passes on the samples of its bottoms for which the last bottom, the selector, is not
// zero. Their number is known only when the layer runs, see resizing.hpp.
#include "cpu/layer.hpp"

#include <algorithm>
#include <cstring>

namespace poseidon::cpu {
namespace {

class filter_kernel final : public kernel {
 public:
  explicit filter_kernel(const layer_context& c)
      : samples_(static_cast<std::size_t>(c.bottom_shape(0)[0])) {
    const std::size_t selector = c.layer.bottoms.size() - 1;
    c.require_no_gradient(selector, "what the samples are chosen by");
    selector_ = view(c.bottom(selector), part::data, layout::plain);
    for (std::size_t i = 0; i < selector; ++i) {
      const shape& s = c.bottom_shape(i);
      branch b{&c.state.extents[c.layer.tops[i]],
               static_cast<std::size_t>(count(s, 1, s.size())),
               view(c.bottom(i), part::data, layout::plain),
               &c.top(i),
               {}};
      *b.top_extents = s;
      if (c.wants_diff(i)) b.dx = view(c.bottom(i), part::diff, layout::plain);
      branches_.push_back(std::move(b));
    }
  }

  void forward(const pass&) override {
    const float* selector = selector_.load();
    chosen_.clear();
    for (std::size_t n = 0; n < samples_; ++n) {
      if (selector[n] != 0) chosen_.push_back(n);
    }
    for (branch& b : branches_) {
      (*b.top_extents)[0] = static_cast<std::int64_t>(chosen_.size());
      const float* x = b.x.load();
      for (std::size_t i = 0; i < chosen_.size(); ++i) {
        std::memcpy(b.top->data + i * b.size, x + chosen_[i] * b.size, b.size * sizeof(float));
      }
    }
  }

  void backward(const pass&) override {
    for (branch& b : branches_) {
      if (!b.dx.exists()) continue;
      float* dx = b.dx.memory();
      std::fill_n(dx, samples_ * b.size, 0.0f);
      for (std::size_t i = 0; i < chosen_.size(); ++i) {
        std::memcpy(dx + chosen_[i] * b.size, b.top->diff + i * b.size, b.size * sizeof(float));
      }
      b.dx.store();
    }
  }

 private:
  struct branch {
    shape* top_extents;
    std::size_t size;  ///< values of one sample
    view x;
    cpu_blob* top;
    view dx;
  };

  std::size_t samples_;
  view selector_;
  std::vector<std::size_t> chosen_;
  std::vector<branch> branches_;
};

}  // namespace

std::unique_ptr<kernel> make_filter(const layer_context& c) {
  return std::make_unique<filter_kernel>(c);
}

}  // namespace poseidon::cpu
