// cpu/layers/accuracy.cpp - Accuracy: top_k along any axis, ignore_label, optional accuracy per class.
#include "cpu/axis.hpp"
#include "cpu/layer.hpp"

#include <optional>
#include <stdexcept>

namespace poseidon::cpu {
namespace {

class accuracy_kernel final : public forward_only {
 public:
  explicit accuracy_kernel(const layer_context& c)
      : name_(c.layer.name),
        axis_(split_at(c.bottom_shape(0), c.layer.spec.accuracy_param().axis())),
        top_k_(c.layer.spec.accuracy_param().top_k()),
        x_(c.bottom(0), part::data, layout::plain),
        label_(c.bottom(1), part::data, layout::plain),
        accuracy_(&c.top(0)) {
    c.require_no_gradient(0, "what Accuracy only counts");
    c.require_no_gradient(1, "labels");
    const auto& p = c.layer.spec.accuracy_param();
    if (p.has_ignore_label()) ignored_ = p.ignore_label();
    if (c.layer.tops.size() > 1) per_class_ = &c.top(1);
    if (c.bottom(1).values() != axis_.outer * axis_.inner) {
      c.refuse("it wants one label per prediction: " + std::to_string(axis_.outer * axis_.inner) +
               " for a bottom of " + to_string(c.bottom_shape(0)) + ", the label blob is " +
               to_string(c.bottom_shape(1)) + ".");
    }
  }

  void forward(const pass&) override {
    const float* x = x_.load();
    const float* label = label_.load();
    std::vector<std::size_t> seen(axis_.size), right(axis_.size);
    std::size_t hits = 0, labels = 0;
    for (std::size_t o = 0; o < axis_.outer; ++o) {
      for (std::size_t i = 0; i < axis_.inner; ++i) {
        const int k = static_cast<int>(label[o * axis_.inner + i]);
        if (ignored_ && k == *ignored_) continue;
        if (k < 0 || static_cast<std::size_t>(k) >= axis_.size) {
          throw std::invalid_argument("layer \"" + name_ + "\" (Accuracy): a label is " +
                                      std::to_string(k) + ", the prediction has " +
                                      std::to_string(axis_.size) + " classes");
        }
        const bool hit =
            among_best(x + o * axis_.size * axis_.inner + i, static_cast<std::size_t>(k));
        ++labels;
        ++seen[static_cast<std::size_t>(k)];
        hits += hit;
        right[static_cast<std::size_t>(k)] += hit;
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

  std::string name_;
  along_axis axis_;
  std::size_t top_k_;
  view x_, label_;
  cpu_blob* accuracy_;
  cpu_blob* per_class_ = nullptr;
  std::optional<int> ignored_;
};

}  // namespace

std::unique_ptr<kernel> make_accuracy(const layer_context& c) {
  return std::make_unique<accuracy_kernel>(c);
}

}  // namespace poseidon::cpu
