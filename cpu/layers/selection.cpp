// cpu/layers/selection.cpp - layers that take some of the values of a blob: Crop, BatchReindex, Embed.
#include "cpu/layer.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace poseidon::cpu {
namespace {

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

/// Embed: row x[i] of a table for each index x[i].
class embed_kernel final : public kernel {
 public:
  explicit embed_kernel(const layer_context& c)
      : name_(c.layer.name),
        rows_(c.layer.spec.embed_param().input_dim()),
        length_(c.layer.spec.embed_param().num_output()),
        indices_(c.bottom(0).values()),
        table_(c.parameter(0)),
        bias_(c.layer.spec.embed_param().bias_term() ? c.parameter(1) : parameter_reader()),
        table_gradient_(c.gradient(0)),
        bias_gradient_(bias_.exists() ? c.gradient(1) : gradient_slot()),
        x_(c.bottom(0), part::data, layout::plain),
        y_(c.top(0), part::data, layout::plain) {
    c.require_no_gradient(0, "indices");
    if (c.top(0).diff != nullptr) dy_ = view(c.top(0), part::diff, layout::plain);
  }

  void forward(const pass&) override {
    const float* x = x_.load();
    const float* table = table_.values();
    float* y = y_.memory();
    for (std::size_t i = 0; i < indices_; ++i) {
      std::memcpy(y + i * length_, table + row(x[i]) * length_, length_ * sizeof(float));
    }
    if (bias_.exists()) {
      const float* b = bias_.values();
      for (std::size_t i = 0; i < indices_; ++i) {
        for (std::size_t k = 0; k < length_; ++k) y[i * length_ + k] += b[k];
      }
    }
    y_.store();
  }

  void backward(const pass&) override {
    if (!dy_.exists()) return;
    const float* x = x_.load();
    const float* dy = dy_.load();
    if (table_gradient_.wanted()) {
      float* g = table_gradient_.begin();
      std::fill_n(g, rows_ * length_, 0.0f);
      for (std::size_t i = 0; i < indices_; ++i) {
        float* to = g + row(x[i]) * length_;
        for (std::size_t k = 0; k < length_; ++k) to[k] += dy[i * length_ + k];
      }
      table_gradient_.end();
    }
    if (bias_gradient_.wanted()) {
      float* g = bias_gradient_.begin();
      std::fill_n(g, length_, 0.0f);
      for (std::size_t i = 0; i < indices_; ++i) {
        for (std::size_t k = 0; k < length_; ++k) g[k] += dy[i * length_ + k];
      }
      bias_gradient_.end();
    }
  }

 private:
  [[nodiscard]] std::size_t row(float index) const {
    if (!(index > -1) || !(index < static_cast<float>(rows_))) {
      throw std::invalid_argument("layer \"" + name_ + "\" (Embed): an index is " +
                                  std::to_string(index) + ", input_dim is " +
                                  std::to_string(rows_) + " (0 to " + std::to_string(rows_ - 1) +
                                  "). Do the data and input_dim belong together?");
    }
    return static_cast<std::size_t>(static_cast<int>(index));
  }

  std::string name_;
  std::size_t rows_, length_, indices_;
  parameter_reader table_, bias_;
  gradient_slot table_gradient_, bias_gradient_;
  view x_, y_, dy_;
};

}  // namespace

std::unique_ptr<kernel> make_crop(const layer_context& c) {
  return std::make_unique<crop_kernel>(c);
}

std::unique_ptr<kernel> make_batch_reindex(const layer_context& c) {
  return std::make_unique<batch_reindex_kernel>(c);
}

std::unique_ptr<kernel> make_embed(const layer_context& c) {
  return std::make_unique<embed_kernel>(c);
}

}  // namespace poseidon::cpu
