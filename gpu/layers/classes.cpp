// gpu/layers/classes.cpp - layers over scores of classes: Softmax, SoftmaxWithLoss, InfogainLoss, Accuracy.
#include "gpu/kernels/copies.hpp"
#include "gpu/kernels/rows.hpp"
#include "gpu/layers/layers.hpp"
#include "models/files/infogain_file.hpp"

namespace poseidon::gpu {
namespace {

class softmax_kernel final : public kernel {
 public:
  explicit softmax_kernel(const layer_context& c)
      : compute_(c.compute()),
        shape_(along_axis(c.bottom_shape(0), c.layer.spec.softmax_param().axis())),
        bottom_(c.bottom(0)),
        top_(c.top(0)),
        backward_wanted_(c.wants_diff(0)),
        own_(c.allocate(2 * shape_.places() * sizeof(float))) {}

  void forward(const pass&) override {
    softmax(compute_, shape_, bottom_.data, own_.floats(), top_.data);
  }
  void backward(const pass&) override {
    if (backward_wanted_)
      softmax_backward(compute_, shape_, top_.data, top_.diff, own_.floats(), bottom_.diff);
  }

 private:
  stream& compute_;
  class_shape shape_;
  const gpu_blob &bottom_, &top_;
  bool backward_wanted_;
  device_memory own_;
};

class softmax_loss_kernel final : public kernel {
 public:
  explicit softmax_loss_kernel(const layer_context& c)
      : compute_(c.compute()),
        shape_(along_axis(c.bottom_shape(0), c.layer.spec.softmax_param().axis())),
        rules_(read_label_rules(c.layer, shape_.classes, loss_norm::valid)),
        scores_(c.bottom(0)),
        labels_(c.bottom(1)),
        loss_(c.top(0)),
        probability_top_(c.layer.tops.size() > 1 ? &c.top(1) : nullptr),
        backward_wanted_(c.wants_diff(0)),
        fault_(watch_labels(c, shape_.classes)),
        probability_(c.allocate(shape_.values() * sizeof(float))),
        own_(c.allocate((2 * shape_.places() + 1) * sizeof(float))) {
    require_labels(c.layer, shape_.places(), c.bottom_shape(0), c.bottom_shape(1));
    c.require_no_gradient(1, "labels");
  }

  void forward(const pass&) override {
    softmax(compute_, shape_, scores_.data, own_.floats() + 1, probability_.floats());
    softmax_loss(compute_, shape_, rules_, probability_.floats(), labels_.data, loss_.data,
                 normalizer(), fault_);
    if (probability_top_ != nullptr)
      copy_values(compute_, shape_.values(), probability_.floats(), probability_top_->data);
  }

  void backward(const pass&) override {
    if (backward_wanted_)
      softmax_loss_backward(compute_, shape_, rules_, probability_.floats(), labels_.data,
                            loss_.diff, normalizer(), scores_.diff);
  }

 private:
  [[nodiscard]] float* normalizer() const { return own_.floats(); }

  stream& compute_;
  class_shape shape_;
  label_rules rules_;
  const gpu_blob &scores_, &labels_, &loss_;
  const gpu_blob* probability_top_;
  bool backward_wanted_;
  label_fault* fault_;
  device_memory probability_, own_;
};

/// - sum over classes k of gain[right, k] log softmax(x)[k], the gains from a bottom or a file.
class infogain_kernel final : public kernel {
 public:
  explicit infogain_kernel(const layer_context& c)
      : compute_(c.compute()),
        shape_(along_axis(c.bottom_shape(0), c.layer.spec.infogain_loss_param().axis())),
        rules_(read_label_rules(c.layer, shape_.classes, loss_norm::valid)),
        scores_(c.bottom(0)),
        labels_(c.bottom(1)),
        loss_(c.top(0)),
        probability_top_(c.layer.tops.size() > 1 ? &c.top(1) : nullptr),
        backward_wanted_(c.wants_diff(0)),
        fault_(watch_labels(c, shape_.classes)),
        probability_(c.allocate(shape_.values() * sizeof(float))),
        own_(c.allocate((2 * shape_.places() + shape_.classes + 1) * sizeof(float))) {
    c.require_no_gradient(1, "labels");
    c.require_no_gradient(2, "the infogain matrix");
    if (c.layer.bottoms.size() > 2) {
      gains_ = c.bottom(2).data;
      return;
    }
    const auto read = read_infogain(c.layer, shape_.classes);
    own_gains_ = c.allocate(read.size() * sizeof(float));
    copy_to_device(compute_, own_gains_.bytes(), read.data(), own_gains_.size());
    gains_ = own_gains_.floats();
  }

  void forward(const pass&) override {
    softmax(compute_, shape_, scores_.data, scratch(), probability_.floats());
    infogain_loss(compute_, shape_, rules_, probability_.floats(), gains_, labels_.data, loss_.data,
                  normalizer(), fault_);
    if (probability_top_ != nullptr)
      copy_values(compute_, shape_.values(), probability_.floats(), probability_top_->data);
  }

  void backward(const pass&) override {
    if (!backward_wanted_) return;
    sum_rows(compute_, row_sum::values, shape_.classes, shape_.classes, 1, gains_, gain_sums());
    infogain_loss_backward(compute_, shape_, rules_, probability_.floats(), gains_, gain_sums(),
                           labels_.data, loss_.diff, normalizer(), scores_.diff);
  }

 private:
  [[nodiscard]] float* normalizer() const { return own_.floats(); }
  [[nodiscard]] float* gain_sums() const { return own_.floats() + 1; }
  [[nodiscard]] float* scratch() const { return own_.floats() + 1 + shape_.classes; }

  stream& compute_;
  class_shape shape_;
  label_rules rules_;
  const gpu_blob &scores_, &labels_, &loss_;
  const gpu_blob* probability_top_;
  bool backward_wanted_;
  label_fault* fault_;
  device_memory probability_, own_, own_gains_;
  const float* gains_ = nullptr;
};

class accuracy_kernel final : public forward_only {
 public:
  explicit accuracy_kernel(const layer_context& c)
      : compute_(c.compute()),
        shape_(along_axis(c.bottom_shape(0), c.layer.spec.accuracy_param().axis())),
        top_k_(c.layer.spec.accuracy_param().top_k()),
        rules_(read_accuracy_rules(c.layer, shape_.classes)),
        scores_(c.bottom(0)),
        labels_(c.bottom(1)),
        accuracy_(c.top(0)),
        per_class_(c.layer.tops.size() > 1 ? c.top(1).data : nullptr),
        fault_(watch_labels(c, shape_.classes)),
        hits_(c.allocate(shape_.places() * sizeof(float))) {
    c.require_no_gradient(0, "what Accuracy only counts");
    c.require_no_gradient(1, "labels");
    require_labels(c.layer, shape_.places(), c.bottom_shape(0), c.bottom_shape(1));
  }

  void forward(const pass&) override {
    accuracy(compute_, shape_, top_k_, rules_, scores_.data, labels_.data, hits_.floats(),
             accuracy_.data, per_class_, fault_);
  }

 private:
  stream& compute_;
  class_shape shape_;
  std::size_t top_k_;
  label_rules rules_;
  const gpu_blob &scores_, &labels_, &accuracy_;
  float* per_class_;
  label_fault* fault_;
  device_memory hits_;
};

}  // namespace

label_fault* watch_labels(const layer_context& c, std::size_t classes) {
  return c.fault([name = c.layer.name, type = c.layer.type, classes](float label) {
    return wrong_label(name, type, classes, label);
  });
}

std::unique_ptr<kernel> make_softmax(const layer_context& c) {
  return std::make_unique<softmax_kernel>(c);
}

std::unique_ptr<kernel> make_softmax_loss(const layer_context& c) {
  return std::make_unique<softmax_loss_kernel>(c);
}

std::unique_ptr<kernel> make_infogain_loss(const layer_context& c) {
  return std::make_unique<infogain_kernel>(c);
}

std::unique_ptr<kernel> make_accuracy(const layer_context& c) {
  return std::make_unique<accuracy_kernel>(c);
}

}  // namespace poseidon::gpu
