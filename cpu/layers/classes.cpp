// cpu/layers/classes.cpp - layers over scores of classes: SoftmaxWithLoss, InfogainLoss, Accuracy. (Softmax: softmax.cpp)
#include "cpu/axis.hpp"
#include "cpu/layers/labels.hpp"
#include "cpu/layers/softmax.hpp"
#include "models/files/infogain_file.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <optional>

namespace poseidon::cpu {
namespace {

/// All of Caffe's normalizations, ignore_label, any axis.
class softmax_loss_kernel final : public kernel {
 public:
  explicit softmax_loss_kernel(const layer_context& c)
      : axis_(split_at(c.bottom_shape(0), c.layer.spec.softmax_param().axis())),
        labels_(c.layer, read_label_rules(c.layer, axis_.size, loss_norm::valid)),
        probability_(c.bottom(0).values()),
        x_(c.bottom(0), part::data, layout::plain),
        label_(c.bottom(1), part::data, layout::plain),
        loss_(&c.top(0)) {
    require_labels(c.layer, axis_.outer * axis_.inner, c.bottom_shape(0), c.bottom_shape(1));
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
  class_labels labels_;
  buffer probability_;
  view x_, label_, dx_, top_probability_;
  cpu_blob* loss_;
  float normalizer_ = 1;
};

/// - sum over classes k of H[right, k] log softmax(x)[k]
class infogain_kernel final : public kernel {
 public:
  explicit infogain_kernel(const layer_context& c)
      : axis_(split_at(c.bottom_shape(0), c.layer.spec.infogain_loss_param().axis())),
        labels_(c.layer, read_label_rules(c.layer, axis_.size, loss_norm::valid)),
        probability_(c.bottom(0).values()),
        row_sums_(axis_.size),
        x_(c.bottom(0), part::data, layout::plain),
        label_(c.bottom(1), part::data, layout::plain),
        loss_(&c.top(0)) {
    c.require_no_gradient(1, "labels");
    c.require_no_gradient(2, "the infogain matrix");
    if (c.layer.bottoms.size() > 2) {
      matrix_bottom_ = view(c.bottom(2), part::data, layout::plain);
    } else {
      matrix_ = read_infogain(c.layer, axis_.size);
    }
    if (c.layer.tops.size() > 1) top_probability_ = view(c.top(1), part::data, layout::plain);
    if (c.wants_diff(0)) dx_ = view(c.bottom(0), part::diff, layout::plain);
  }

  void forward(const pass&) override {
    softmax_forward(axis_, x_.load(), probability_.data());
    const float* label = label_.load();
    const float* h = matrix();
    double loss = 0;
    std::size_t valid = 0;
    each_place([&](std::size_t place, std::size_t first) {
      if (labels_.is_ignored(label[place])) return;
      ++valid;
      const float* row = h + labels_.class_of(label[place]) * axis_.size;
      for (std::size_t k = 0; k < axis_.size; ++k) {
        const float p = probability_.data()[first + k * axis_.inner];
        loss -= double{row[k]} * double{std::log(std::max(p, least_probability))};
      }
    });
    normalizer_ = labels_.normalizer(axis_.outer, axis_.inner, valid);
    loss_->data[0] = static_cast<float>(loss / double{normalizer_});
    if (!top_probability_.exists()) return;
    std::copy_n(probability_.data(), probability_.size(), top_probability_.memory());
    top_probability_.store();
  }

  void backward(const pass&) override {
    if (!dx_.exists()) return;
    const float* label = label_.load();
    const float* h = matrix();
    float* dx = dx_.memory();
    const float scale = loss_->diff[0] / normalizer_;
    for (std::size_t r = 0; r < axis_.size; ++r) {
      row_sums_[r] = 0;
      for (std::size_t k = 0; k < axis_.size; ++k) row_sums_[r] += h[r * axis_.size + k];
    }
    each_place([&](std::size_t place, std::size_t first) {
      const bool counts = !labels_.is_ignored(label[place]);
      const std::size_t right = counts ? labels_.class_of(label[place]) : 0;
      for (std::size_t k = 0; k < axis_.size; ++k) {
        const std::size_t at = first + k * axis_.inner;
        const float gain = h[right * axis_.size + k];
        dx[at] = counts ? scale * (probability_.data()[at] * row_sums_[right] - gain) : 0;
      }
    });
    dx_.store();
  }

 private:
  /// Calls f(place of the label, place of the first class's value).
  template <class F>
  void each_place(F f) const {
    for (std::size_t o = 0; o < axis_.outer; ++o) {
      for (std::size_t i = 0; i < axis_.inner; ++i) {
        f(o * axis_.inner + i, o * axis_.size * axis_.inner + i);
      }
    }
  }
  [[nodiscard]] const float* matrix() {
    return matrix_bottom_.exists() ? matrix_bottom_.load() : matrix_.data();
  }

  along_axis axis_;
  class_labels labels_;
  buffer probability_;
  std::vector<float> matrix_, row_sums_;
  view x_, label_, matrix_bottom_, top_probability_, dx_;
  cpu_blob* loss_;
  float normalizer_ = 1;
};

/// top_k along any axis, ignore_label, and optionally the accuracy of each class.
class accuracy_kernel final : public forward_only {
 public:
  explicit accuracy_kernel(const layer_context& c)
      : axis_(split_at(c.bottom_shape(0), c.layer.spec.accuracy_param().axis())),
        top_k_(c.layer.spec.accuracy_param().top_k()),
        labels_(c.layer, read_accuracy_rules(c.layer, axis_.size)),
        x_(c.bottom(0), part::data, layout::plain),
        label_(c.bottom(1), part::data, layout::plain),
        accuracy_(&c.top(0)) {
    c.require_no_gradient(0, "what Accuracy only counts");
    c.require_no_gradient(1, "labels");
    if (c.layer.tops.size() > 1) per_class_ = &c.top(1);
    require_labels(c.layer, axis_.outer * axis_.inner, c.bottom_shape(0), c.bottom_shape(1));
  }

  void forward(const pass&) override {
    const float* x = x_.load();
    const float* label = label_.load();
    std::vector<std::size_t> seen(axis_.size), right(axis_.size);
    std::size_t hits = 0, labels = 0;
    for (std::size_t o = 0; o < axis_.outer; ++o) {
      for (std::size_t i = 0; i < axis_.inner; ++i) {
        const float own = label[o * axis_.inner + i];
        if (labels_.is_ignored(own)) continue;
        const std::size_t k = labels_.class_of(own);
        const bool hit = among_best(x + o * axis_.size * axis_.inner + i, k);
        ++labels;
        ++seen[k];
        hits += hit;
        right[k] += hit;
      }
    }
    // Without a single label Caffe divides by zero; none of none is right here.
    accuracy_->data[0] = labels == 0 ? 0 : static_cast<float>(hits) / static_cast<float>(labels);
    for (std::size_t k = 0; per_class_ != nullptr && k < axis_.size; ++k) {
      per_class_->data[k] =
          seen[k] == 0 ? 0 : static_cast<float>(right[k]) / static_cast<float>(seen[k]);
    }
  }

 private:
  /// Equal scores count as better, so a constant prediction is wrong everywhere.
  [[nodiscard]] bool among_best(const float* x, std::size_t k) const {
    const float own = x[k * axis_.inner];
    std::size_t better = 0;  // the label's own score counts here, and once in the limit
    for (std::size_t n = 0; n < axis_.size; ++n) better += x[n * axis_.inner] >= own;
    return better <= top_k_;
  }

  along_axis axis_;
  std::size_t top_k_;
  class_labels labels_;
  view x_, label_;
  cpu_blob* accuracy_;
  cpu_blob* per_class_ = nullptr;
};

}  // namespace

std::unique_ptr<kernel> make_softmax_loss(const layer_context& c) {
  return std::make_unique<softmax_loss_kernel>(c);
}

std::unique_ptr<kernel> make_infogain_loss(const layer_context& c) {
  return std::make_unique<infogain_kernel>(c);
}

std::unique_ptr<kernel> make_accuracy(const layer_context& c) {
  return std::make_unique<accuracy_kernel>(c);
}

}  // namespace poseidon::cpu
