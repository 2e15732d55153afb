// cpu/split.cpp - one blob for several consumers: it shares the values, and sums the gradients in the tops'
// order.
#include "cpu/split.hpp"

#include "cpu/lanes.hpp"

#include <algorithm>
#include <cstring>

namespace poseidon::cpu {
namespace {

bool written_after(const net& n, std::size_t layer, std::size_t blob) {
  for (std::size_t i = layer + 1; i < n.layers.size(); ++i) {
    for (const std::size_t t : n.layers[i].tops) {
      if (t == blob) return true;
    }
  }
  return false;
}

/// Does some layer write this top's diff? (Accuracy, for one, does not.)
bool has_gradient(const net& n, std::size_t layer, std::size_t blob) {
  for (std::size_t i = layer + 1; i < n.layers.size(); ++i) {
    const net_layer& l = n.layers[i];
    for (std::size_t b = 0; b < l.bottoms.size() && b < l.propagate_down.size(); ++b) {
      if (l.bottoms[b] == blob && l.propagate_down[b]) return true;
    }
  }
  return false;
}

class split_kernel final : public kernel {
 public:
  explicit split_kernel(const layer_context& c) : bottom_(&c.bottom(0)) {
    const split_sharing sharing = sharing_of(c.state, c.index);
    for (std::size_t i = 0; i < c.layer.tops.size(); ++i) {
      cpu_blob& top = c.top(i);
      tops_.push_back({&top, sharing.data[i], view(top, part::data, bottom_->form)});
      if (sharing.data[i]) top.data = bottom_->data;
    }
    if (!c.wants_diff(0)) return;
    if (sharing.diff) {
      c.top(*sharing.diff).diff = bottom_->diff;
      return;
    }
    writes_diff_ = true;
    for (const std::size_t i : sharing.diffs)
      diffs_.emplace_back(c.top(i), part::diff, bottom_->form);
  }

  void forward(const pass&) override {
    for (branch& b : tops_) {
      if (b.shares) {
        b.top->data = bottom_->data;
      } else {
        std::memcpy(b.copy.memory(), bottom_->data, bottom_->memory() * sizeof(float));
        b.copy.store();
      }
    }
  }

  void backward(const pass&) override {
    if (!writes_diff_) return;
    if (diffs_.empty()) {
      std::memset(bottom_->diff, 0, bottom_->memory() * sizeof(float));
    } else {
      with_type(bottom_->form, [&](auto of) { add_diffs<decltype(of)>(); });
    }
  }

 private:
  static constexpr std::size_t tile = 2048;  // floats: 8 KiB
  struct branch {
    cpu_blob* top;
    bool shares;
    view copy;
  };

  template <class T>
  void add_diffs() {
    std::vector<const T*> parts;
    for (view& diff : diffs_) parts.push_back(as<T>(diff.load()));
    T* to = as<T>(bottom_->diff);
    const std::size_t size = bottom_->stored();
    // A tile at a time: the sum stays in the cache until all parts are in it, and is rounded once.
    float sum[tile];
    for (std::size_t begin = 0; begin < size; begin += tile) {
      const std::size_t values = std::min(tile, size - begin);
      for (std::size_t t = 0; t < parts.size(); ++t) {
        const T* x = parts[t] + begin;
        const bool first = t == 0;
        each_value<T>(values, [=, &sum]<class V>(std::size_t i) {
          store<V>(sum + i, first ? load<V>(x + i) : load<V>(sum + i) + load<V>(x + i));
        });
      }
      each_value<T>(values,
                    [&]<class V>(std::size_t i) { store<V>(to + begin + i, load<V>(sum + i)); });
    }
  }

  cpu_blob* bottom_;
  std::vector<branch> tops_;
  std::vector<view> diffs_;
  bool writes_diff_ = false;
};

}  // namespace

split_sharing sharing_of(const replica_state& state, std::size_t layer) {
  const net& n = state.graph;
  const net_layer& l = n.layers[layer];
  const bool apart = state.options.keep_all_diffs;
  const layout form = state.blobs[l.bottoms[0]].form;
  split_sharing s;
  for (std::size_t i = 0; i < l.tops.size(); ++i) {
    s.data.push_back(state.blobs[l.tops[i]].form == form && !written_after(n, layer, l.tops[i]));
    if (apart || has_gradient(n, layer, l.tops[i])) s.diffs.push_back(i);
  }
  if (!apart && s.diffs.size() == 1 && state.blobs[l.tops[s.diffs[0]]].form == form)
    s.diff = s.diffs[0];
  return s;
}

std::unique_ptr<kernel> make_split(const layer_context& c) {
  return std::make_unique<split_kernel>(c);
}

}  // namespace poseidon::cpu
