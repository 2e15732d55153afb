// cpu/layers/combination.cpp - layers that move values without changing them: Flatten, Reshape, Concat, Slice, Silence,
// Tile, Parameter.
#include "cpu/axis.hpp"
#include "cpu/layer.hpp"
#include "models/net/joined_axis.hpp"

#include <algorithm>
#include <cstring>

namespace poseidon::cpu {
namespace {

/// Flatten and Reshape: the same plain values under another shape. Memory is shared where the
/// bottom is plain.
class reshape_kernel final : public kernel {
 public:
  explicit reshape_kernel(const layer_context& c)
      : in_place_(c.in_place()),
        bottom_(&c.bottom(0)),
        top_(&c.top(0)),
        x_(c.bottom(0), part::data, layout::plain) {
    if (c.wants_diff(0) && !in_place_) dx_ = view(c.bottom(0), part::diff, layout::plain);
  }
  void forward(const pass&) override {
    if (!in_place_) std::memcpy(top_->data, x_.load(), top_->stored() * sizeof(float));
  }
  void backward(const pass&) override {
    if (!dx_.exists()) return;
    std::memcpy(dx_.memory(), top_->diff, top_->stored() * sizeof(float));
    dx_.store();
  }

 private:
  bool in_place_;
  cpu_blob *bottom_, *top_;
  view x_, dx_;
};

/// The parts of one blob along an axis, in order: Concat joins them, Slice cuts them.
class joined_axis {
 public:
  /// `pixels`: as layout::pixels_bf16, where channels (axis 1) come last.
  joined_axis(const shape& whole, std::size_t axis, bool pixels)
      : pixels_(pixels), axis_(pixels ? 3 : axis), whole_(in_memory(whole)) {}
  /// Calls move(offset in the whole, offset in the part, values) for every run of the part at
  /// `first`.
  template <class Move>
  void each_run(const shape& extents, std::size_t first, Move move) const {
    const shape part = in_memory(extents);
    const auto outer = static_cast<std::size_t>(count(part, 0, axis_));
    const auto run = static_cast<std::size_t>(count(part, axis_, part.size()));
    const auto whole_run = static_cast<std::size_t>(count(whole_, axis_, whole_.size()));
    const auto start = first * static_cast<std::size_t>(count(whole_, axis_ + 1, whole_.size()));
    for (std::size_t o = 0; o < outer; ++o) move(o * whole_run + start, o * run, run);
  }
  [[nodiscard]] std::size_t extent(const shape& part) const {
    return static_cast<std::size_t>(in_memory(part).at(axis_));
  }

 private:
  [[nodiscard]] shape in_memory(const shape& s) const {
    return pixels_ ? shape{s.at(0), s.at(2), s.at(3), s.at(1)} : s;
  }

  bool pixels_;
  std::size_t axis_;
  shape whole_;
};

/// Concat forward and Slice backward join; Concat backward and Slice forward cut.
class join_kernel final : public kernel {
 public:
  join_kernel(const layer_context& c, bool concat)
      : concat_(concat),
        axis_(concat ? c.top_shape(0) : c.bottom_shape(0), joined_axis_of(c.state.graph, c.layer),
              c.top(0).form == layout::pixels_bf16) {
    cpu_blob& whole = concat ? c.top(0) : c.bottom(0);
    const auto& parts = concat ? c.layer.bottoms : c.layer.tops;
    // Blocked only where no block is cut; then runs lie as in the plain layout.
    const layout form = c.top(0).form;
    value_bytes_ = is_bf16(form) ? sizeof(bfloat16) : sizeof(float);
    whole_data_ = view(whole, part::data, form);
    if (whole.diff != nullptr) whole_diff_ = view(whole, part::diff, form);
    backward_ = c.layer.needs_backward && c.state.has_backward() && whole.diff != nullptr;
    std::size_t first = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      cpu_blob& b = concat ? c.bottom(i) : c.top(i);
      piece p{b.extents, first, view(b, part::data, form), {}};
      const bool diff = concat ? c.wants_diff(i) : c.wants_diff(0) && b.diff != nullptr;
      if (diff) p.diff = view(b, part::diff, form);
      first += axis_.extent(*b.extents);
      pieces_.push_back(std::move(p));
    }
    if (!concat && !c.wants_diff(0)) backward_ = false;
  }

  void forward(const pass&) override {
    if (concat_) {
      for (piece& p : pieces_) join(p, whole_data_.memory(), p.data.load());
      whole_data_.store();
    } else {
      const float* whole = whole_data_.load();
      for (piece& p : pieces_) cut(p, whole, p.data.memory()), p.data.store();
    }
  }

  void backward(const pass&) override {
    if (!backward_) return;
    if (concat_) {
      const float* whole = whole_diff_.load();
      for (piece& p : pieces_) {
        if (p.diff.exists()) cut(p, whole, p.diff.memory()), p.diff.store();
      }
    } else {
      for (piece& p : pieces_) {
        if (p.diff.exists()) join(p, whole_diff_.memory(), p.diff.load());
      }
      whole_diff_.store();
    }
  }

 private:
  struct piece {
    const shape* extents;
    std::size_t first;
    view data, diff;
  };
  [[nodiscard]] char* at_value(float* memory, std::size_t place) const {
    return as<char>(memory) + place * value_bytes_;
  }
  [[nodiscard]] const char* at_value(const float* memory, std::size_t place) const {
    return as<char>(memory) + place * value_bytes_;
  }
  void join(const piece& p, float* whole, const float* from) const {
    axis_.each_run(*p.extents, p.first, [&](std::size_t at, std::size_t own, std::size_t size) {
      std::memcpy(at_value(whole, at), at_value(from, own), size * value_bytes_);
    });
  }
  void cut(const piece& p, const float* whole, float* to) const {
    axis_.each_run(*p.extents, p.first, [&](std::size_t at, std::size_t own, std::size_t size) {
      std::memcpy(at_value(to, own), at_value(whole, at), size * value_bytes_);
    });
  }

  bool concat_, backward_ = false;
  std::size_t value_bytes_;
  joined_axis axis_;
  view whole_data_, whole_diff_;
  std::vector<piece> pieces_;
};

/// Silence swallows its bottoms; their diffs are zero.
class silence_kernel final : public kernel {
 public:
  explicit silence_kernel(const layer_context& c) {
    for (std::size_t i = 0; i < c.layer.bottoms.size(); ++i) {
      if (c.wants_diff(i)) bottoms_.push_back(&c.bottom(i));
    }
  }
  void forward(const pass&) override {}
  void backward(const pass&) override {
    for (cpu_blob* b : bottoms_) std::memset(b->diff, 0, b->memory() * sizeof(float));
  }

 private:
  std::vector<cpu_blob*> bottoms_;
};

/// The values from one axis on, `tiles` times in a row.
class tile_kernel final : public kernel {
 public:
  explicit tile_kernel(const layer_context& c)
      : tiles_(static_cast<std::size_t>(c.layer.spec.tile_param().tiles())),
        x_(c.bottom(0), part::data, layout::plain),
        y_(c.top(0), part::data, layout::plain) {
    const along_axis a = split_at(c.bottom_shape(0), c.layer.spec.tile_param().axis());
    outer_ = a.outer;
    run_ = a.size * a.inner;
    if (!c.wants_diff(0)) return;
    dx_ = view(c.bottom(0), part::diff, layout::plain);
    dy_ = view(c.top(0), part::diff, layout::plain);
  }

  void forward(const pass&) override {
    const float* x = x_.load();
    float* y = y_.memory();
    for (std::size_t o = 0; o < outer_; ++o, x += run_) {
      for (std::size_t t = 0; t < tiles_; ++t, y += run_) std::memcpy(y, x, run_ * sizeof(float));
    }
    y_.store();
  }

  void backward(const pass&) override {
    if (!dx_.exists()) return;
    const float* dy = dy_.load();
    float* dx = dx_.memory();
    for (std::size_t o = 0; o < outer_; ++o, dx += run_) {
      std::memset(dx, 0, run_ * sizeof(float));
      for (std::size_t t = 0; t < tiles_; ++t, dy += run_) {
        for (std::size_t i = 0; i < run_; ++i) dx[i] += dy[i];
      }
    }
    dx_.store();
  }

 private:
  std::size_t tiles_, outer_ = 1, run_ = 1;
  view x_, y_, dx_, dy_;
};

/// Parameter: a learned blob as a top.
class parameter_kernel final : public kernel {
 public:
  explicit parameter_kernel(const layer_context& c)
      : values_(c.parameter(0)),
        gradient_(c.gradient(0)),
        size_(c.top(0).values()),
        y_(c.top(0), part::data, layout::plain) {
    if (c.top(0).diff != nullptr) dy_ = view(c.top(0), part::diff, layout::plain);
  }
  void forward(const pass&) override {
    std::copy_n(values_.values(), size_, y_.memory());
    y_.store();
  }
  void backward(const pass&) override {
    if (!dy_.exists() || !gradient_.wanted()) return;
    std::copy_n(dy_.load(), size_, gradient_.begin());
    gradient_.end();
  }

 private:
  parameter_reader values_;
  gradient_slot gradient_;
  std::size_t size_;
  view y_, dy_;
};

}  // namespace

std::unique_ptr<kernel> make_reshape(const layer_context& c) {
  return std::make_unique<reshape_kernel>(c);
}

std::unique_ptr<kernel> make_concat(const layer_context& c) {
  return std::make_unique<join_kernel>(c, true);
}

std::unique_ptr<kernel> make_slice(const layer_context& c) {
  return std::make_unique<join_kernel>(c, false);
}

std::unique_ptr<kernel> make_silence(const layer_context& c) {
  return std::make_unique<silence_kernel>(c);
}

std::unique_ptr<kernel> make_tile(const layer_context& c) {
  return std::make_unique<tile_kernel>(c);
}

std::unique_ptr<kernel> make_parameter(const layer_context& c) {
  return std::make_unique<parameter_kernel>(c);
}

}  // namespace poseidon::cpu
