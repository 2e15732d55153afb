// gpu/layers/combination.cpp - layers that combine blobs or hand them on: Eltwise, Split, Reshape and Flatten,
// Concat and Slice, Tile, Silence, Parameter.
#include "gpu/kernels/copies.hpp"
#include "gpu/kernels/elementwise.hpp"
#include "gpu/layers/layers.hpp"
#include "gpu/residual.hpp"
#include "models/joined_axis.hpp"

#include <algorithm>
#include <array>

namespace poseidon::gpu {
namespace {

using operation = ::caffe::EltwiseParameter;

/// SUM with coefficients, PROD or MAX over two or more bottoms of one shape.
class eltwise_kernel final : public kernel {
 public:
  explicit eltwise_kernel(const layer_context& c)
      : compute_(c.compute()),
        how_(c.layer.spec.eltwise_param().operation()),
        size_(c.top(0).values()),
        top_(c.top(0)) {
    const auto& p = c.layer.spec.eltwise_param();
    for (std::size_t i = 0; i < c.layer.bottoms.size(); ++i)
      bottoms_.push_back(
          {c.bottom(i), c.wants_diff(i), p.coeff_size() > 0 ? p.coeff(static_cast<int>(i)) : 1.0f});
    if (c.in_place() && c.layer.needs_backward && how_ != operation::SUM)
      c.refuse("only SUM can work in place: the others need their bottoms for backward.");
    if (how_ == operation::SUM && bottoms_.size() == 2 && !c.in_place())
      relu_slope_ = c.take_relu(both_wanted());
    if (const auto& r = c.state.residuals[c.index]) {
      one_gradient_ = r->one_gradient;
      if (r->split) {
        c.state.backward_done[*r->split] = true;
        gradients_ = {&c.state.blobs[r->gradients[0]], &c.state.blobs[r->gradients[1]]};
      }
    }
    if (how_ == operation::MAX) winner_ = c.allocate(size_ * sizeof(std::int32_t));
  }

  void forward(const pass&) override {
    const operand &first = bottoms_[0], &second = bottoms_[bottoms_.size() > 1 ? 1 : 0];
    if (bottoms_.size() == 1) {
      gpu::scale(compute_, size_, how_ == operation::SUM ? first.coefficient : 1, first.blob.data,
                 top_.data);
      if (how_ == operation::MAX) fill(compute_, size_, std::int32_t{0}, winner());
    } else if (how_ == operation::SUM) {
      add_scaled(compute_, size_, first.coefficient, first.blob.data, second.coefficient,
                 second.blob.data, top_.data, relu_slope_);
      for (std::size_t b = 2; b < bottoms_.size(); ++b)
        add_scaled(compute_, size_, 1, top_.data, bottoms_[b].coefficient, bottoms_[b].blob.data,
                   top_.data);
    } else if (how_ == operation::PROD) {
      multiply(compute_, size_, first.blob.data, second.blob.data, top_.data);
      for (std::size_t b = 2; b < bottoms_.size(); ++b)
        multiply(compute_, size_, top_.data, bottoms_[b].blob.data, top_.data);
    } else {
      copy_values(compute_, size_, first.blob.data, top_.data);
      fill(compute_, size_, std::int32_t{0}, winner());
      // As Caffe: of the first two the second wins a tie, later ones lose theirs.
      for (std::size_t b = 1; b < bottoms_.size(); ++b)
        take_larger(compute_, size_, bottoms_[b].blob.data, b == 1, static_cast<std::int32_t>(b),
                    top_.data, winner());
    }
  }

  void backward(const pass&) override {
    if (relu_slope_ != 1 && both_wanted())
      return add_scaled_backward(
          compute_, size_, relu_slope_, top_.data, gradients_[0]->diff,
          gradients_[1] == nullptr ? const_values() : const_values(gradients_[1]->diff),
          bottoms_[0].coefficient, one_gradient_ ? top_.diff : bottoms_[0].blob.diff,
          bottoms_[1].coefficient, one_gradient_ ? values() : bottoms_[1].blob.diff);
    // In place (SUM only) the first bottom's diff is the top's own and goes last.
    for (std::size_t b = bottoms_.size(); b-- > 0;) {
      if (bottoms_[b].backward_wanted) write_diff(b);
    }
  }

 private:
  struct operand {
    const gpu_blob& blob;
    bool backward_wanted;
    float coefficient;
  };

  [[nodiscard]] bool both_wanted() const {
    return bottoms_[0].backward_wanted && bottoms_[1].backward_wanted;
  }
  void write_diff(std::size_t b) {
    const values dx = bottoms_[b].blob.diff;
    if (how_ == operation::SUM) {
      gpu::scale(compute_, size_, bottoms_[b].coefficient, top_.diff, dx);
    } else if (how_ == operation::MAX) {
      give_to_winner(compute_, size_, static_cast<std::int32_t>(b), winner(), top_.diff, dx);
    } else {  // the product of the others, without dividing: a factor may be zero
      values so_far = top_.diff;
      for (std::size_t o = 0; o < bottoms_.size(); ++o) {
        if (o == b) continue;
        multiply(compute_, size_, so_far, bottoms_[o].blob.data, dx);
        so_far = dx;
      }
    }
  }
  [[nodiscard]] std::int32_t* winner() const {
    return reinterpret_cast<std::int32_t*>(winner_.bytes());
  }

  stream& compute_;
  operation::EltwiseOp how_;
  std::size_t size_;
  const gpu_blob& top_;
  std::vector<operand> bottoms_;
  float relu_slope_ = 1;  // of the ReLU in place behind a sum of two
  // See gpu/residual.hpp. The gradients to be summed: the top's own, or those of the Split behind it.
  std::array<const gpu_blob*, 2> gradients_{&top_, nullptr};
  bool one_gradient_ = false;
  device_memory winner_;
};

/// One blob for several consumers: each gets a copy, and their gradients are summed in the tops' order. Where the
/// replica has given a top the bottom's own memory there is nothing to copy.
class split_kernel final : public kernel {
 public:
  explicit split_kernel(const layer_context& c)
      : compute_(c.compute()),
        bottom_(c.bottom(0)),
        backward_wanted_(c.wants_diff(0) && !c.state.backward_done[c.index]) {
    for (std::size_t i = 0; i < c.layer.tops.size(); ++i) {
      tops_.push_back(&c.top(i));
      if (c.top(i).diff != nullptr && has_gradient(c, c.layer.tops[i])) diffs_.push_back(&c.top(i));
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

  /// Does some layer write this top's diff? (Accuracy, for one, does not.) Where somebody looks at every diff, all
  /// count.
  static bool has_gradient(const layer_context& c, std::size_t blob) {
    if (c.state.options.keep_all_diffs) return true;
    const auto all = gradients_of_split(c.state, c.index);
    return std::find(all.begin(), all.end(), blob) != all.end();
  }

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

layout_wish any_layout(const net&, const net_layer&) {
  return layout_wish::as_bottom;
}

layout_wish join_layout(const net& n, const net_layer& l) {
  return joined_axis_of(n, l) == 1 ? layout_wish::as_bottom : layout_wish::nchw;
}

std::unique_ptr<kernel> make_eltwise(const layer_context& c) {
  return std::make_unique<eltwise_kernel>(c);
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
