// gpu/layers/classes.cpp - layers over scores of classes: Softmax, SoftmaxWithLoss, InfogainLoss, Accuracy.
#include "gpu/kernels/copies.hpp"
#include "gpu/kernels/rows.hpp"
#include "gpu/layers/layers.hpp"
#include "models/files/snapshot_io.hpp"

#include <filesystem>

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

/// Errors   the layer's, if the labels are not one for each prediction.
void require_labels(const layer_context& c, const class_shape& s) {
  if (c.bottom(1).values() == s.places()) return;
  c.refuse("it wants one label per prediction: " + std::to_string(s.places()) +
           " for a bottom of " + to_string(c.bottom_shape(0)) + ", the label blob is " +
           to_string(c.bottom_shape(1)) + ".");
}

class softmax_loss_kernel final : public kernel {
 public:
  explicit softmax_loss_kernel(const layer_context& c)
      : compute_(c.compute()),
        shape_(along_axis(c.bottom_shape(0), c.layer.spec.softmax_param().axis())),
        rules_(read_label_rules(c, shape_.classes, loss_norm::valid)),
        scores_(c.bottom(0)),
        labels_(c.bottom(1)),
        loss_(c.top(0)),
        probability_top_(c.layer.tops.size() > 1 ? &c.top(1) : nullptr),
        backward_wanted_(c.wants_diff(0)),
        fault_(watch_labels(c, shape_.classes)),
        probability_(c.allocate(shape_.values() * sizeof(float))),
        own_(c.allocate((2 * shape_.places() + 1) * sizeof(float))) {
    require_labels(c, shape_);
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

/// The matrix of an InfogainLoss when a file gives it. Relative paths start at the working directory, as in Caffe, or
/// else beside the file that names them.
std::vector<float> read_gains(const layer_context& c, std::size_t classes) {
  const std::filesystem::path named = c.layer.spec.infogain_loss_param().source();
  std::filesystem::path path = named;
  std::error_code ignored;
  if (named.is_relative() && !std::filesystem::exists(named, ignored))
    path = std::filesystem::path(c.layer.where.file).parent_path() / named;
  ::caffe::BlobProto matrix;
  read_message(path, "the infogain matrix of layer \"" + c.layer.name + "\"", matrix);
  const auto values = static_cast<std::size_t>(matrix.data_size());
  if (values != classes * classes)
    c.refuse("the infogain matrix of \"" + path.string() + "\" has " + std::to_string(values) +
             " values, " + std::to_string(classes) + " classes need " +
             std::to_string(classes * classes) + ".");
  return {matrix.data().begin(), matrix.data().end()};
}

/// - sum over classes k of gain[right, k] log softmax(x)[k], the gains from a bottom or a file.
class infogain_kernel final : public kernel {
 public:
  explicit infogain_kernel(const layer_context& c)
      : compute_(c.compute()),
        shape_(along_axis(c.bottom_shape(0), c.layer.spec.infogain_loss_param().axis())),
        rules_(read_label_rules(c, shape_.classes, loss_norm::valid)),
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
    const auto read = read_gains(c, shape_.classes);
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
        scores_(c.bottom(0)),
        labels_(c.bottom(1)),
        accuracy_(c.top(0)),
        per_class_(c.layer.tops.size() > 1 ? c.top(1).data : nullptr),
        fault_(watch_labels(c, shape_.classes)),
        hits_(c.allocate(shape_.places() * sizeof(float))) {
    c.require_no_gradient(0, "what Accuracy only counts");
    c.require_no_gradient(1, "labels");
    require_labels(c, shape_);
    const auto& p = c.layer.spec.accuracy_param();
    rules_.classes = static_cast<std::int32_t>(shape_.classes);
    rules_.ignores = p.has_ignore_label();
    rules_.ignored = p.ignore_label();
  }

  void forward(const pass&) override {
    accuracy(compute_, shape_, top_k_, rules_, scores_.data, labels_.data, hits_.floats(),
             accuracy_.data, per_class_, fault_);
  }

 private:
  stream& compute_;
  class_shape shape_;
  std::size_t top_k_;
  const gpu_blob &scores_, &labels_, &accuracy_;
  float* per_class_;
  label_fault* fault_;
  device_memory hits_;
  label_rules rules_;
};

}  // namespace

label_rules read_label_rules(const layer_context& c, std::size_t classes, loss_norm otherwise) {
  using norm = ::caffe::LossParameter;
  const auto& p = c.layer.spec.loss_param();
  label_rules r;
  r.classes = static_cast<std::int32_t>(classes);
  r.ignores = p.has_ignore_label();
  r.ignored = p.ignore_label();
  r.norm = otherwise;
  // The older field speaks only where the newer one is silent.
  if (p.has_normalization()) {
    r.norm = p.normalization() == norm::FULL         ? loss_norm::full
             : p.normalization() == norm::VALID      ? loss_norm::valid
             : p.normalization() == norm::BATCH_SIZE ? loss_norm::batch
                                                     : loss_norm::none;
  } else if (p.has_normalize()) {
    r.norm = p.normalize() ? loss_norm::valid : loss_norm::batch;
  }
  return r;
}

label_fault* watch_labels(const layer_context& c, std::size_t classes) {
  return c.fault([name = c.layer.name, type = c.layer.type, classes](float label) {
    return "layer \"" + name + "\" (" + type + "): a label is " + std::to_string(label) +
           ", the prediction has " + std::to_string(classes) + " classes (0 to " +
           std::to_string(classes - 1) +
           "). Do the data and the last layer's num_output belong together?";
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
