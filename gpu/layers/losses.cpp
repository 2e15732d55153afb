// gpu/layers/losses.cpp - EuclideanLoss, SigmoidCrossEntropyLoss, HingeLoss, MultinomialLogisticLoss,
// ContrastiveLoss.
#include "gpu/kernels/losses.hpp"

#include "gpu/kernels/elementwise.hpp"
#include "gpu/layers/layers.hpp"

namespace poseidon::gpu {
namespace {

std::size_t samples_of(const shape& s) {
  return s.empty() ? 1 : static_cast<std::size_t>(s[0]);
}

/// sum (a - b)^2 / (2 N), N the first axis.
class euclidean_kernel final : public kernel {
 public:
  explicit euclidean_kernel(const layer_context& c)
      : compute_(c.compute()),
        samples_(static_cast<float>(samples_of(c.bottom_shape(0)))),
        a_(c.bottom(0)),
        b_(c.bottom(1)),
        loss_(c.top(0)),
        da_wanted_(c.wants_diff(0)),
        db_wanted_(c.wants_diff(1)),
        difference_(c.allocate(a_.values() * sizeof(float))) {}

  void forward(const pass&) override {
    euclidean_loss(compute_, a_.values(), samples_, a_.data, b_.data, difference_.floats(),
                   loss_.data);
  }
  void backward(const pass&) override {
    if (da_wanted_) write(1 / samples_, a_.diff);
    if (db_wanted_) write(-1 / samples_, b_.diff);
  }

 private:
  void write(float factor, float* dx) {
    euclidean_loss_backward(compute_, a_.values(), factor, difference_.floats(), loss_.diff, dx);
  }

  stream& compute_;
  float samples_;
  const gpu_blob &a_, &b_, &loss_;
  bool da_wanted_, db_wanted_;
  device_memory difference_;
};

/// Cross entropy of sigmoid(x) against targets in [0, 1].
class sigmoid_cross_entropy_kernel final : public kernel {
 public:
  explicit sigmoid_cross_entropy_kernel(const layer_context& c)
      : compute_(c.compute()),
        samples_(samples_of(c.bottom_shape(0))),
        rules_(read_label_rules(c.layer, 0, loss_norm::batch)),
        x_(c.bottom(0)),
        target_(c.bottom(1)),
        loss_(c.top(0)),
        probability_(c.layer.tops.size() > 1 ? &c.top(1) : nullptr),
        backward_wanted_(c.wants_diff(0)),
        normalizer_(c.allocate(sizeof(float))) {
    c.require_no_gradient(1, "targets");
  }

  void forward(const pass&) override {
    sigmoid_cross_entropy(compute_, x_.values(), samples_, rules_, x_.data, target_.data,
                          loss_.data, normalizer_.floats());
    if (probability_ != nullptr)
      apply(compute_, {activation::kind::sigmoid}, x_.values(), x_.data, probability_->data);
  }
  void backward(const pass&) override {
    if (backward_wanted_)
      sigmoid_cross_entropy_backward(compute_, x_.values(), rules_, x_.data, target_.data,
                                     loss_.diff, normalizer_.floats(), x_.diff);
  }

 private:
  stream& compute_;
  std::size_t samples_;
  label_rules rules_;
  const gpu_blob &x_, &target_, &loss_;
  const gpu_blob* probability_;
  bool backward_wanted_;
  device_memory normalizer_;
};

/// HingeLoss and MultinomialLogisticLoss: rows of one prediction per sample, whatever its axes.
class row_loss_kernel final : public kernel {
 public:
  explicit row_loss_kernel(const layer_context& c)
      : compute_(c.compute()),
        hinge_(c.layer.type == "HingeLoss"),
        squared_(c.layer.spec.hinge_loss_param().norm() == ::caffe::HingeLossParameter::L2),
        shape_(rows_of(c)),
        rules_(read_label_rules(c.layer, shape_.classes, loss_norm::batch)),
        x_(c.bottom(0)),
        label_(c.bottom(1)),
        loss_(c.top(0)),
        backward_wanted_(c.wants_diff(0)),
        fault_(watch_labels(c, shape_.classes)) {
    c.require_no_gradient(1, "labels");
    if (hinge_) margins_ = c.allocate(x_.values() * sizeof(float));
  }

  void forward(const pass&) override {
    if (hinge_) {
      hinge_loss(compute_, shape_, squared_, rules_, x_.data, label_.data, margins_.floats(),
                 loss_.data, fault_);
    } else {
      multinomial_loss(compute_, shape_, rules_, x_.data, label_.data, loss_.data, fault_);
    }
  }
  void backward(const pass&) override {
    if (!backward_wanted_) return;
    if (hinge_) {
      hinge_loss_backward(compute_, shape_, squared_, margins_.floats(), loss_.diff, x_.diff);
    } else {
      multinomial_loss_backward(compute_, shape_, rules_, x_.data, label_.data, loss_.diff,
                                x_.diff);
    }
  }

 private:
  static score_rows rows_of(const layer_context& c) {
    const std::size_t rows = samples_of(c.bottom_shape(0));
    return {rows, rows == 0 ? 0 : c.bottom(0).values() / rows};
  }

  stream& compute_;
  bool hinge_, squared_;
  score_rows shape_;
  label_rules rules_;
  const gpu_blob &x_, &label_, &loss_;
  bool backward_wanted_;
  label_fault* fault_;
  device_memory margins_;
};

/// Distances of pairs: small where the pair is similar, above the margin where it is not.
class contrastive_kernel final : public kernel {
 public:
  explicit contrastive_kernel(const layer_context& c)
      : compute_(c.compute()),
        a_(c.bottom(0)),
        b_(c.bottom(1)),
        similar_(c.bottom(2)),
        loss_(c.top(0)),
        da_wanted_(c.wants_diff(0)),
        db_wanted_(c.wants_diff(1)),
        difference_(c.allocate(a_.values() * sizeof(float))) {
    c.require_no_gradient(2, "labels");
    const auto& p = c.layer.spec.contrastive_loss_param();
    pairs_.pairs = samples_of(c.bottom_shape(0));
    pairs_.length = pairs_.pairs == 0 ? 0 : a_.values() / pairs_.pairs;
    pairs_.margin = p.margin();
    pairs_.legacy = p.legacy_version();
    squared_ = c.allocate(pairs_.pairs * sizeof(float));
  }

  void forward(const pass&) override {
    contrastive_loss(compute_, pairs_, a_.data, b_.data, similar_.data, difference_.floats(),
                     squared_.floats(), loss_.data);
  }
  void backward(const pass&) override {
    if (da_wanted_) write(1, a_.diff);
    if (db_wanted_) write(-1, b_.diff);
  }

 private:
  void write(float sign, float* dx) {
    contrastive_loss_backward(compute_, pairs_, sign, difference_.floats(), squared_.floats(),
                              similar_.data, loss_.diff, dx);
  }

  stream& compute_;
  const gpu_blob &a_, &b_, &similar_, &loss_;
  bool da_wanted_, db_wanted_;
  device_memory difference_, squared_;
  contrastive_pairs pairs_;
};

}  // namespace

std::unique_ptr<kernel> make_row_loss(const layer_context& c) {
  return std::make_unique<row_loss_kernel>(c);
}

std::unique_ptr<kernel> make_contrastive_loss(const layer_context& c) {
  return std::make_unique<contrastive_kernel>(c);
}

std::unique_ptr<kernel> make_euclidean_loss(const layer_context& c) {
  return std::make_unique<euclidean_kernel>(c);
}

std::unique_ptr<kernel> make_sigmoid_cross_entropy_loss(const layer_context& c) {
  return std::make_unique<sigmoid_cross_entropy_kernel>(c);
}

}  // namespace poseidon::gpu
