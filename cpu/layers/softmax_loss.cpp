// cpu/layers/softmax_loss.cpp - SoftmaxWithLoss: all of Caffe's normalizations, ignore_label, any axis.
#include "cpu/layers/labels.hpp"
#include "cpu/layers/softmax.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <optional>

namespace poseidon::cpu {
namespace {

class softmax_loss_kernel final : public kernel {
 public:
  explicit softmax_loss_kernel(const layer_context& c)
      : axis_(split_at(c.bottom_shape(0), c.layer.spec.softmax_param().axis())),
        labels_(c, axis_.size, normalization::VALID),
        probability_(c.bottom(0).values()),
        x_(c.bottom(0), part::data, layout::plain),
        label_(c.bottom(1), part::data, layout::plain),
        loss_(&c.top(0)) {
    if (c.bottom(1).values() != axis_.outer * axis_.inner) {
      c.refuse("it wants one label per prediction: " + std::to_string(axis_.outer * axis_.inner) +
               " for a bottom of " + to_string(c.bottom_shape(0)) + ", the label blob is " +
               to_string(c.bottom_shape(1)) + ".");
    }
    c.require_no_gradient(1, "labels");
    if (c.layer.tops.size() > 1) top_probability_ = view(c.top(1), part::data, layout::plain);
    if (c.wants_diff(0)) dx_ = view(c.bottom(0), part::diff, layout::plain);
  }

  void forward(const pass&) override {
    softmax_forward(axis_, x_.load(), probability_.data());
    const float* label = label_.load();
    float loss = 0;
    std::size_t valid = 0;
    for (std::size_t o = 0; o < axis_.outer; ++o) {
      for (std::size_t i = 0; i < axis_.inner; ++i) {
        const auto k = checked(label[o * axis_.inner + i]);
        if (!k) continue;
        ++valid;
        loss -= std::log(
            std::max(probability_.data()[(o * axis_.size + *k) * axis_.inner + i], FLT_MIN));
      }
    }
    normalizer_ = labels_.normalizer(axis_.outer, axis_.inner, valid);
    loss_->data[0] = loss / normalizer_;
    if (!top_probability_.exists()) return;
    std::copy_n(probability_.data(), probability_.size(), top_probability_.memory());
    top_probability_.store();
  }

  void backward(const pass&) override {
    if (!dx_.exists()) return;
    const float* label = label_.load();
    float* dx = dx_.memory();
    const float scale = loss_->diff[0] / normalizer_;
    for (std::size_t i = 0; i < probability_.size(); ++i) dx[i] = probability_.data()[i] * scale;
    for (std::size_t o = 0; o < axis_.outer; ++o) {
      for (std::size_t i = 0; i < axis_.inner; ++i) {
        float* at = dx + o * axis_.size * axis_.inner + i;
        const auto k = checked(label[o * axis_.inner + i]);
        if (k) {
          float& hit = at[*k * axis_.inner];
          hit = (probability_.data()[(o * axis_.size + *k) * axis_.inner + i] - 1) * scale;
        } else {
          for (std::size_t n = 0; n < axis_.size; ++n) at[n * axis_.inner] = 0;
        }
      }
    }
    dx_.store();
  }

 private:
  /// The class of a label, nothing for the ignored one.
  [[nodiscard]] std::optional<std::size_t> checked(float label) const {
    if (labels_.is_ignored(label)) return std::nullopt;
    return labels_.class_of(label);
  }

  along_axis axis_;
  label_rules labels_;
  buffer probability_;
  view x_, label_, dx_, top_probability_;
  cpu_blob* loss_;
  float normalizer_ = 1;
};

}  // namespace

std::unique_ptr<kernel> make_softmax_loss(const layer_context& c) {
  return std::make_unique<softmax_loss_kernel>(c);
}

}  // namespace poseidon::cpu
