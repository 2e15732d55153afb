// cpu/layers/embed.cpp - Embed: row x[i] of a table for each index x[i].
#include "cpu/layer.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace poseidon::cpu {
namespace {

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

std::unique_ptr<kernel> make_embed(const layer_context& c) {
  return std::make_unique<embed_kernel>(c);
}

}  // namespace poseidon::cpu
