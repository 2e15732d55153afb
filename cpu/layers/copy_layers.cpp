// cpu/layers/copy_layers.cpp - layers that copy some values of a blob, or some of them several times: Tile,
// Crop, BatchReindex, Parameter.
#include "cpu/axis.hpp"
#include "cpu/layer.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace poseidon::cpu {
namespace {

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

/// A box of bottom 0, as large as bottom 1 from one axis on. Bottom 1 gives nothing but its shape,
/// so its gradient is zero.
class crop_kernel final : public kernel {
 public:
  explicit crop_kernel(const layer_context& c)
      : row_(c.top_shape(0).empty() ? 1 : static_cast<std::size_t>(c.top_shape(0).back())),
        x_(c.bottom(0), part::data, layout::plain),
        y_(c.top(0), part::data, layout::plain) {
    find_rows(c);
    if (c.wants_diff(1)) reference_ = &c.bottom(1);
    if (!c.wants_diff(0)) return;
    dx_size_ = c.bottom(0).values();
    dx_ = view(c.bottom(0), part::diff, layout::plain);
    dy_ = view(c.top(0), part::diff, layout::plain);
  }

  void forward(const pass&) override {
    const float* x = x_.load();
    float* y = y_.memory();
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      std::memcpy(y + r * row_, x + rows_[r], row_ * sizeof(float));
    }
    y_.store();
  }

  void backward(const pass&) override {
    if (reference_ != nullptr) std::fill_n(reference_->diff, reference_->stored(), 0.0f);
    if (!dx_.exists()) return;
    const float* dy = dy_.load();
    float* dx = dx_.memory();
    std::fill_n(dx, dx_size_, 0.0f);
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      std::memcpy(dx + rows_[r], dy + r * row_, row_ * sizeof(float));
    }
    dx_.store();
  }

 private:
  /// Where each row of the top (its last axis) begins in the bottom.
  void find_rows(const layer_context& c) {
    const auto& p = c.layer.spec.crop_param();
    const shape &in = c.bottom_shape(0), &out = c.top_shape(0);
    const auto axes = static_cast<int>(in.size());
    const int first = p.axis() < 0 ? p.axis() + axes : p.axis();
    std::vector<std::size_t> steps(in.size(), 1);
    for (std::size_t a = in.size(); a-- > 1;) {
      steps[a - 1] = steps[a] * static_cast<std::size_t>(in[a]);
    }
    rows_.assign(1, 0);
    for (int a = 0; a < axes; ++a) {
      const auto axis = static_cast<std::size_t>(a);
      const bool cropped = a >= first && p.offset_size() > 0;
      const std::size_t offset = cropped ? p.offset(p.offset_size() == 1 ? 0 : a - first) : 0;
      const auto extent = a + 1 == axes ? std::size_t{1} : static_cast<std::size_t>(out[axis]);
      std::vector<std::size_t> finer;
      finer.reserve(rows_.size() * extent);
      for (const std::size_t row : rows_) {
        for (std::size_t i = 0; i < extent; ++i) finer.push_back(row + (offset + i) * steps[axis]);
      }
      rows_ = std::move(finer);
    }
    if (c.top(0).values() == 0) rows_.clear();
  }

  std::size_t row_, dx_size_ = 0;
  std::vector<std::size_t> rows_;
  cpu_blob* reference_ = nullptr;
  view x_, y_, dx_, dy_;
};

/// Sample number z[i] of bottom 0 becomes sample i of the top.
class batch_reindex_kernel final : public kernel {
 public:
  explicit batch_reindex_kernel(const layer_context& c)
      : name_(c.layer.name),
        samples_(static_cast<std::size_t>(c.bottom_shape(0)[0])),
        size_(static_cast<std::size_t>(count(c.bottom_shape(0), 1, c.bottom_shape(0).size()))),
        taken_(c.bottom(1).values()),
        x_(c.bottom(0), part::data, layout::plain),
        index_(c.bottom(1), part::data, layout::plain),
        y_(c.top(0), part::data, layout::plain) {
    c.require_no_gradient(1, "indices");
    if (!c.wants_diff(0)) return;
    dx_ = view(c.bottom(0), part::diff, layout::plain);
    dy_ = view(c.top(0), part::diff, layout::plain);
  }

  void forward(const pass&) override {
    const float* x = x_.load();
    const float* index = index_.load();
    float* y = y_.memory();
    for (std::size_t i = 0; i < taken_; ++i) {
      std::memcpy(y + i * size_, x + sample(index[i]) * size_, size_ * sizeof(float));
    }
    y_.store();
  }

  void backward(const pass&) override {
    if (!dx_.exists()) return;
    const float* index = index_.load();
    const float* dy = dy_.load();
    float* dx = dx_.memory();
    std::fill_n(dx, samples_ * size_, 0.0f);
    for (std::size_t i = 0; i < taken_; ++i) {
      float* to = dx + sample(index[i]) * size_;
      for (std::size_t k = 0; k < size_; ++k) to[k] += dy[i * size_ + k];
    }
    dx_.store();
  }

 private:
  [[nodiscard]] std::size_t sample(float index) const {
    if (!(index > -1) || !(index < static_cast<float>(samples_))) {
      throw std::invalid_argument("layer \"" + name_ + "\" (BatchReindex): an index is " +
                                  std::to_string(index) + ", its first bottom has " +
                                  std::to_string(samples_) + " samples (0 to " +
                                  std::to_string(samples_ - 1) + ").");
    }
    return static_cast<std::size_t>(static_cast<int>(index));
  }

  std::string name_;
  std::size_t samples_, size_, taken_;
  view x_, index_, y_, dx_, dy_;
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

std::unique_ptr<kernel> make_tile(const layer_context& c) {
  return std::make_unique<tile_kernel>(c);
}

std::unique_ptr<kernel> make_crop(const layer_context& c) {
  return std::make_unique<crop_kernel>(c);
}

std::unique_ptr<kernel> make_batch_reindex(const layer_context& c) {
  return std::make_unique<batch_reindex_kernel>(c);
}

std::unique_ptr<kernel> make_parameter(const layer_context& c) {
  return std::make_unique<parameter_kernel>(c);
}

}  // namespace poseidon::cpu
