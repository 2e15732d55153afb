// cpu/split.cpp - one blob for several consumers: values are shared, gradients summed in the tops'
// order.
#include "cpu/layer.hpp"

#include <cstring>

namespace poseidon::cpu {
namespace {

class split_kernel final : public kernel {
 public:
  explicit split_kernel(const layer_context& c) : bottom_(&c.bottom(0)) {
    for (std::size_t i = 0; i < c.layer.tops.size(); ++i) {
      cpu_blob& top = c.top(i);
      // A consumer that works in place must not change what the others see.
      const bool shares = top.form == bottom_->form && !written_later(c, c.layer.tops[i]);
      tops_.push_back({&top, shares, view(top, part::data, bottom_->form)});
      if (shares && !c.state.options.keep_all_diffs) top.own_data = buffer();
      if (shares) top.data = bottom_->data;
      if (c.wants_diff(0) && (c.state.options.keep_all_diffs || has_gradient(c, c.layer.tops[i]))) {
        diffs_.emplace_back(top, part::diff, bottom_->form);
      }
    }
    if (!c.wants_diff(0)) return;
    // With one consumer that has a gradient, its diff is the bottom's.
    if (diffs_.size() == 1 && !diffs_[0].converts() && !c.state.options.keep_all_diffs) {
      for (std::size_t i = 0; i < c.layer.tops.size(); ++i) {
        if (has_gradient(c, c.layer.tops[i])) c.top(i).diff = bottom_->diff;
      }
      diffs_.clear();
      shares_diff_ = true;
    }
    writes_diff_ = !shares_diff_;
  }

  void forward(const pass&) override {
    for (branch& b : tops_) {
      if (b.shares) {
        b.top->data = bottom_->data;
      } else {
        std::memcpy(b.copy.memory(), bottom_->data, bottom_->stored() * sizeof(float));
        b.copy.store();
      }
    }
  }

  void backward(const pass&) override {
    if (!writes_diff_) return;
    const std::size_t size = bottom_->stored();
    float* sum = bottom_->diff;
    if (diffs_.empty()) std::memset(sum, 0, size * sizeof(float));
    for (std::size_t t = 0; t < diffs_.size(); ++t) {
      const float* x = diffs_[t].load();
      if (t == 0) {
        std::memcpy(sum, x, size * sizeof(float));
      } else {
        for (std::size_t i = 0; i < size; ++i) sum[i] += x[i];
      }
    }
  }

 private:
  struct branch {
    cpu_blob* top;
    bool shares;
    view copy;
  };

  static bool written_later(const layer_context& c, std::size_t blob) {
    for (std::size_t i = c.index + 1; i < c.state.graph.layers.size(); ++i) {
      for (const std::size_t t : c.state.graph.layers[i].tops) {
        if (t == blob) return true;
      }
    }
    return false;
  }

  /// Does some layer write this top's diff? (Accuracy, for one, does not.)
  static bool has_gradient(const layer_context& c, std::size_t blob) {
    for (std::size_t i = c.index + 1; i < c.state.graph.layers.size(); ++i) {
      const net_layer& l = c.state.graph.layers[i];
      for (std::size_t b = 0; b < l.bottoms.size() && b < l.propagate_down.size(); ++b) {
        if (l.bottoms[b] == blob && l.propagate_down[b]) return true;
      }
    }
    return false;
  }

  cpu_blob* bottom_;
  std::vector<branch> tops_;
  std::vector<view> diffs_;
  bool shares_diff_ = false;
  bool writes_diff_ = false;
};

}  // namespace

std::unique_ptr<kernel> make_split(const layer_context& c) {
  return std::make_unique<split_kernel>(c);
}

}  // namespace poseidon::cpu
