// cpu/layers/losses_contrastive.cpp - ContrastiveLoss: pairs of vectors that should be near or far apart.
#include "cpu/layer.hpp"

#include <algorithm>
#include <cmath>

namespace poseidon::cpu {
namespace {

/// Per pair, with d = a - b: |d|^2 if similar, else max(0, margin - |d|)^2, and
/// max(0, margin - |d|^2) in the legacy version; the sum is divided by 2 N.
class contrastive_kernel final : public kernel {
 public:
  explicit contrastive_kernel(const layer_context& c)
      : pairs_(static_cast<std::size_t>(c.bottom_shape(0)[0])),
        length_(pairs_ == 0 ? 0 : c.bottom(0).values() / pairs_),
        margin_(c.layer.spec.contrastive_loss_param().margin()),
        legacy_(c.layer.spec.contrastive_loss_param().legacy_version()),
        difference_(c.bottom(0).values()),
        squared_distance_(pairs_),
        a_(c.bottom(0), part::data, layout::plain),
        b_(c.bottom(1), part::data, layout::plain),
        similar_(c.bottom(2), part::data, layout::plain),
        loss_(&c.top(0)) {
    c.require_no_gradient(2, "labels");
    if (c.wants_diff(0)) da_ = view(c.bottom(0), part::diff, layout::plain);
    if (c.wants_diff(1)) db_ = view(c.bottom(1), part::diff, layout::plain);
  }

  void forward(const pass&) override {
    const float* a = a_.load();
    const float* b = b_.load();
    const float* similar = similar_.load();
    double sum = 0;
    for (std::size_t n = 0; n < pairs_; ++n) {
      double squared = 0;
      for (std::size_t i = n * length_; i < (n + 1) * length_; ++i) {
        const float d = a[i] - b[i];
        difference_.data()[i] = d;
        squared += double{d} * double{d};
      }
      squared_distance_[n] = static_cast<float>(squared);
      if (is_similar(similar[n])) {
        sum += squared;
      } else if (legacy_) {
        sum += std::max(double{margin_} - squared, 0.0);
      } else {
        const double gap = std::max(double{margin_} - std::sqrt(squared), 0.0);
        sum += gap * gap;
      }
    }
    loss_->data[0] = static_cast<float>(sum / static_cast<double>(pairs_) / 2);
  }

  void backward(const pass&) override {
    write(da_, 1);
    write(db_, -1);
  }

 private:
  /// Caffe's labels are integers: 0.5 is 0.
  static bool is_similar(float label) { return static_cast<int>(label) != 0; }

  void write(view& to, float sign) {
    if (!to.exists()) return;
    const float scale = sign * loss_->diff[0] / static_cast<float>(pairs_);
    const float* similar = similar_.load();
    float* dx = to.memory();
    for (std::size_t n = 0; n < pairs_; ++n) {
      const float k = is_similar(similar[n]) ? scale : scale * pull(squared_distance_[n]);
      for (std::size_t i = n * length_; i < (n + 1) * length_; ++i)
        dx[i] = k * difference_.data()[i];
    }
    to.store();
  }

  /// Derivative of half the loss of a dissimilar pair by d, over d.
  [[nodiscard]] float pull(float squared) const {
    if (legacy_) return margin_ - squared > 0 ? -1.0f : 0.0f;
    const float distance = std::sqrt(squared);
    constexpr float keeps_finite = 1e-4f;  // two equal vectors have no direction to go to
    return -std::max(margin_ - distance, 0.0f) / (distance + keeps_finite);
  }

  std::size_t pairs_, length_;
  float margin_;
  bool legacy_;
  buffer difference_;
  std::vector<float> squared_distance_;
  view a_, b_, similar_, da_, db_;
  cpu_blob* loss_;
};

}  // namespace

std::unique_ptr<kernel> make_contrastive_loss(const layer_context& c) {
  return std::make_unique<contrastive_kernel>(c);
}

}  // namespace poseidon::cpu
