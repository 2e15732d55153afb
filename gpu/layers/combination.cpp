// gpu/layers/combination.cpp - layers that join blobs or hand them on: Split, Reshape and Flatten,
// Concat and Slice, Tile, Silence, Parameter.
#include "gpu/kernels/copies.hpp"
#include "gpu/kernels/elementwise.hpp"
#include "gpu/layers/layers.hpp"
#include "gpu/residual.hpp"
#include "models/net/joined_axis.hpp"

#include <algorithm>

namespace poseidon::gpu {
namespace {

/// One blob for several consumers: each gets a copy, and their gradients are summed in the tops' order. Where the
/// replica has given a top the bottom's own memory there is nothing to copy.
class split_kernel final : public kernel {
 public:
  explicit split_kernel(const layer_context& c)
      : compute_(c.compute()),
        bottom_(c.bottom(0)),
        backward_wanted_(c.wants_diff(0) && !c.state.backward_done[c.index]) {
    // With keep_all_diffs the diffs of all tops count.
    const auto bring =
        c.state.options.keep_all_diffs ? c.layer.tops : gradients_of_split(c.state.graph, c.index);
    for (std::size_t i = 0; i < c.layer.tops.size(); ++i) {
      tops_.push_back(&c.top(i));
      if (c.top(i).diff != nullptr && std::count(bring.begin(), bring.end(), c.layer.tops[i]) > 0)
        diffs_.push_back(&c.top(i));
    }
  }

  void forward(const pass&) override {
    for (const gpu_blob* top : tops_)
      if (top->data != bottom_.data)
        copy_values(compute_, bottom_.values(), bottom_.data, top->data);
  }

  void backward(const pass&) override {
    if (!backward_wanted_) return;
    const std::size_t n = bottom_.values();
    if (diffs_.empty()) {
      clear(compute_, bottom_.diff.at(), bottom_.bytes());
    } else if (diffs_.size() == 1) {
      if (diffs_[0]->diff != bottom_.diff) copy_values(compute_, n, diffs_[0]->diff, bottom_.diff);
    } else {
      std::vector<const_values> some;
      for (const gpu_blob* top : diffs_) {
        some.push_back(top->diff);
        if (some.size() < most_at_once && top != diffs_.back()) continue;
        add_up(compute_, n, some, bottom_.diff);
        some = {bottom_.diff};
      }
    }
  }

 private:
  static constexpr std::size_t most_at_once = 4;

  stream& compute_;
  const gpu_blob& bottom_;
  bool backward_wanted_;
  std::vector<const gpu_blob*> tops_, diffs_;
};

/// Flatten and Reshape: the same values under another shape. Nothing to do where they share memory.
class reshape_kernel final : public kernel {
 public:
  explicit reshape_kernel(const layer_context& c)
      : compute_(c.compute()),
        bottom_(c.bottom(0)),
        top_(c.top(0)),
        backward_wanted_(c.wants_diff(0)) {}
  void forward(const pass&) override { copy(bottom_.data, top_.data); }
  void backward(const pass&) override {
    if (backward_wanted_) copy(top_.diff, bottom_.diff);
  }

 private:
  void copy(const float* from, float* to) {
    if (from != to) copy_values(compute_, top_.values(), from, to);
  }

  stream& compute_;
  const gpu_blob &bottom_, &top_;
  bool backward_wanted_;
};

/// The parts of one blob along an axis, in order: Concat joins them, Slice cuts them.
class join_kernel final : public kernel {
 public:
  join_kernel(const layer_context& c, bool concat)
      : compute_(c.compute()), concat_(concat), whole_(concat ? c.top(0) : c.bottom(0)) {
    const shape& whole = *whole_.extents;
    const std::size_t axis = joined_axis_of(c.state.graph, c.layer);
    const bool nhwc = channels_last(c.order());  // then the axis is the channels'
    const auto inner = nhwc ? 1 : static_cast<std::size_t>(count(whole, axis + 1, whole.size()));
    std::size_t first = 0;
    for (std::size_t i = 0; i < (concat ? c.layer.bottoms : c.layer.tops).size(); ++i) {
      const gpu_blob& b = concat ? c.bottom(i) : c.top(i);
      const std::size_t extent = static_cast<std::size_t>((*b.extents).at(axis));
      const bool backward = concat ? c.wants_diff(i) : c.wants_diff(0) && b.diff != nullptr;
      parts_.push_back({b, first * inner, extent * inner, backward});
      first += extent;
    }
    runs_ = nhwc ? c.channels_of(whole).outer : static_cast<std::size_t>(count(whole, 0, axis));
    step_ = first * inner;
  }

  void forward(const pass&) override {
    for (const part& p : parts_) {
      if (concat_) {
        join(p, p.blob.data, whole_.data);
      } else {
        cut(p, whole_.data, p.blob.data);
      }
    }
  }

  void backward(const pass&) override {
    for (const part& p : parts_) {
      if (!p.backward_wanted) continue;
      if (concat_) {
        cut(p, whole_.diff, p.blob.diff);
      } else {
        join(p, p.blob.diff, whole_.diff);
      }
    }
  }

 private:
  struct part {
    const gpu_blob& blob;
    std::size_t first, length;  ///< in a run of the whole
    bool backward_wanted;
  };
  void join(const part& p, const_values from, values whole) {
    copy_runs(compute_, {runs_, p.length, p.length, step_}, from, whole + p.first);
  }
  void cut(const part& p, const_values whole, values to) {
    copy_runs(compute_, {runs_, p.length, step_, p.length}, whole + p.first, to);
  }

  stream& compute_;
  bool concat_;
  const gpu_blob& whole_;
  std::size_t runs_ = 1, step_ = 0;
  std::vector<part> parts_;
};

/// The values from one axis on, several times in a row.
class tile_kernel final : public kernel {
 public:
  explicit tile_kernel(const layer_context& c)
      : compute_(c.compute()),
        bottom_(c.bottom(0)),
        top_(c.top(0)),
        backward_wanted_(c.wants_diff(0)),
        times_(static_cast<std::size_t>(c.layer.spec.tile_param().tiles())) {
    const class_shape s = along_axis(c.bottom_shape(0), c.layer.spec.tile_param().axis());
    outer_ = s.outer;
    run_ = s.classes * s.inner;
  }
  void forward(const pass&) override {
    tile(compute_, outer_, times_, run_, bottom_.data, top_.data);
  }
  void backward(const pass&) override {
    if (backward_wanted_) sum_tiles(compute_, outer_, times_, run_, top_.diff, bottom_.diff);
  }

 private:
  stream& compute_;
  const gpu_blob &bottom_, &top_;
  bool backward_wanted_;
  std::size_t times_, outer_ = 1, run_ = 1;
};

/// Silence swallows its bottoms; their diffs are zero.
class silence_kernel final : public kernel {
 public:
  explicit silence_kernel(const layer_context& c) : compute_(c.compute()) {
    for (std::size_t i = 0; i < c.layer.bottoms.size(); ++i)
      if (c.wants_diff(i)) bottoms_.push_back(&c.bottom(i));
  }
  void forward(const pass&) override {}
  void backward(const pass&) override {
    for (const gpu_blob* b : bottoms_) clear(compute_, b->diff.at(), b->bytes());
  }

 private:
  stream& compute_;
  std::vector<const gpu_blob*> bottoms_;
};

/// A learned blob as a top.
class parameter_kernel final : public kernel {
 public:
  explicit parameter_kernel(const layer_context& c)
      : compute_(c.compute()), top_(c.top(0)), values_(c.parameter(0)), gradient_(c.gradient(0)) {}
  void forward(const pass&) override { copy_values(compute_, top_.values(), values_, top_.data); }
  void backward(const pass&) override {
    if (top_.diff == nullptr || !gradient_.wanted()) return;
    copy_values(compute_, top_.values(), top_.diff, gradient_.begin());
    gradient_.end();
  }

 private:
  stream& compute_;
  const gpu_blob& top_;
  const float* values_;
  gradient_slot gradient_;
};

}  // namespace

layout_option any_layout(const net&, const net_layer&) {
  return layout_option::as_bottom;
}

layout_option join_layout(const net& n, const net_layer& l) {
  return joined_axis_of(n, l) == 1 ? layout_option::as_bottom : layout_option::nchw;
}

std::unique_ptr<kernel> make_split(const layer_context& c) {
  return std::make_unique<split_kernel>(c);
}

std::unique_ptr<kernel> make_reshape(const layer_context& c) {
  return std::make_unique<reshape_kernel>(c);
}

std::unique_ptr<kernel> make_concat(const layer_context& c) {
  return std::make_unique<join_kernel>(c, true);
}

std::unique_ptr<kernel> make_slice(const layer_context& c) {
  return std::make_unique<join_kernel>(c, false);
}

std::unique_ptr<kernel> make_tile(const layer_context& c) {
  return std::make_unique<tile_kernel>(c);
}

std::unique_ptr<kernel> make_silence(const layer_context& c) {
  return std::make_unique<silence_kernel>(c);
}

std::unique_ptr<kernel> make_parameter(const layer_context& c) {
  return std::make_unique<parameter_kernel>(c);
}

}  // namespace poseidon::gpu
