// cpu/layers/class_losses.cpp - HingeLoss, MultinomialLogisticLoss and InfogainLoss: scores or
// probabilities of classes against the right class.
#include "cpu/layers/labels.hpp"
#include "cpu/layers/softmax.hpp"
#include "models/files/snapshot_io.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace poseidon::cpu {
namespace {

/// Probabilities are taken to be at least this before their logarithm.
constexpr float least_probability = 1e-20f;

/// Rows of one prediction per sample, whatever its axes: [samples, classes].
along_axis rows_of(const shape& s) {
  const auto samples = s.empty() ? 1 : static_cast<std::size_t>(s[0]);
  const auto values = static_cast<std::size_t>(count(s));
  return {samples, samples == 0 ? 0 : values / samples, 1};
}

/// L1: sum of m = max(0, 1 - t x), L2: sum of m^2; t is 1 for the right class and -1 for the
/// others. Divided by the samples.
class hinge_kernel final : public kernel {
 public:
  explicit hinge_kernel(const layer_context& c)
      : rows_(rows_of(c.bottom_shape(0))),
        labels_(c, rows_.size, normalization::BATCH_SIZE),
        squared_(c.layer.spec.hinge_loss_param().norm() == ::caffe::HingeLossParameter::L2),
        margin_(c.bottom(0).values()),
        x_(c.bottom(0), part::data, layout::plain),
        label_(c.bottom(1), part::data, layout::plain),
        loss_(&c.top(0)) {
    c.require_no_gradient(1, "labels");
    if (c.wants_diff(0)) dx_ = view(c.bottom(0), part::diff, layout::plain);
  }

  void forward(const pass&) override {
    const float* x = x_.load();
    const float* label = label_.load();
    double sum = 0;
    for (std::size_t n = 0; n < rows_.outer; ++n) {
      const std::size_t right = labels_.class_of(label[n]);
      for (std::size_t k = 0; k < rows_.size; ++k) {
        const std::size_t at = n * rows_.size + k;
        const float m = std::max(0.0f, 1 + (k == right ? -x[at] : x[at]));
        sum += squared_ ? double{m} * double{m} : double{m};
        margin_.data()[at] = k == right ? -m : m;  // with the sign of the derivative
      }
    }
    loss_->data[0] = static_cast<float>(sum / static_cast<double>(rows_.outer));
  }

  void backward(const pass&) override {
    if (!dx_.exists()) return;
    const float scale = loss_->diff[0] / static_cast<float>(rows_.outer);
    float* dx = dx_.memory();
    for (std::size_t i = 0; i < margin_.size(); ++i) {
      const float m = margin_.data()[i];
      const float sign = m > 0 ? 1.0f : m < 0 ? -1.0f : 0.0f;
      dx[i] = scale * (squared_ ? 2 * m : sign);
    }
    dx_.store();
  }

 private:
  along_axis rows_;
  label_rules labels_;
  bool squared_;
  buffer margin_;
  view x_, label_, dx_;
  cpu_blob* loss_;
};

/// - sum log p[right] / samples, of probabilities.
class multinomial_kernel final : public kernel {
 public:
  explicit multinomial_kernel(const layer_context& c)
      : rows_(rows_of(c.bottom_shape(0))),
        labels_(c, rows_.size, normalization::BATCH_SIZE),
        x_(c.bottom(0), part::data, layout::plain),
        label_(c.bottom(1), part::data, layout::plain),
        loss_(&c.top(0)) {
    c.require_no_gradient(1, "labels");
    if (c.wants_diff(0)) dx_ = view(c.bottom(0), part::diff, layout::plain);
  }

  void forward(const pass&) override {
    const float* x = x_.load();
    const float* label = label_.load();
    double sum = 0;
    for (std::size_t n = 0; n < rows_.outer; ++n) {
      const float p = x[n * rows_.size + labels_.class_of(label[n])];
      sum -= std::log(std::max(p, least_probability));
    }
    loss_->data[0] = static_cast<float>(sum / static_cast<double>(rows_.outer));
  }

  void backward(const pass&) override {
    if (!dx_.exists()) return;
    const float* x = x_.load();
    const float* label = label_.load();
    float* dx = dx_.memory();
    std::fill_n(dx, rows_.outer * rows_.size, 0.0f);
    const float scale = -loss_->diff[0] / static_cast<float>(rows_.outer);
    for (std::size_t n = 0; n < rows_.outer; ++n) {
      const std::size_t at = n * rows_.size + labels_.class_of(label[n]);
      dx[at] = scale / std::max(x[at], least_probability);
    }
    dx_.store();
  }

 private:
  along_axis rows_;
  label_rules labels_;
  view x_, label_, dx_;
  cpu_blob* loss_;
};

/// The matrix of InfogainLoss when a file gives it. Relative paths start at the working directory,
/// as in Caffe, or else beside the file that names them.
std::vector<float> read_infogain(const layer_context& c, std::size_t classes) {
  namespace fs = std::filesystem;
  const fs::path named = c.layer.spec.infogain_loss_param().source();
  fs::path path = named;
  std::error_code ignored;
  if (named.is_relative() && !fs::exists(named, ignored)) {
    path = fs::path(c.layer.where.file).parent_path() / named;
  }
  ::caffe::BlobProto matrix;
  read_message(path, "the infogain matrix of layer \"" + c.layer.name + "\"", matrix);
  const auto values = static_cast<std::size_t>(matrix.data_size());
  if (values != classes * classes) {
    c.refuse("the infogain matrix of \"" + path.string() + "\" has " + std::to_string(values) +
             " values, " + std::to_string(classes) + " classes need " +
             std::to_string(classes * classes) + ".");
  }
  return {matrix.data().begin(), matrix.data().end()};
}

/// - sum over classes k of H[right, k] log softmax(x)[k]
class infogain_kernel final : public kernel {
 public:
  explicit infogain_kernel(const layer_context& c)
      : axis_(split_at(c.bottom_shape(0), c.layer.spec.infogain_loss_param().axis())),
        labels_(c, axis_.size, normalization::VALID),
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
      matrix_ = read_infogain(c, axis_.size);
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
  label_rules labels_;
  buffer probability_;
  std::vector<float> matrix_, row_sums_;
  view x_, label_, matrix_bottom_, top_probability_, dx_;
  cpu_blob* loss_;
  float normalizer_ = 1;
};

}  // namespace

std::unique_ptr<kernel> make_hinge_loss(const layer_context& c) {
  return std::make_unique<hinge_kernel>(c);
}

std::unique_ptr<kernel> make_multinomial_logistic_loss(const layer_context& c) {
  return std::make_unique<multinomial_kernel>(c);
}

std::unique_ptr<kernel> make_infogain_loss(const layer_context& c) {
  return std::make_unique<infogain_kernel>(c);
}

}  // namespace poseidon::cpu
