#include "models/net/label_rules.hpp"

#include "models/net/refusal.hpp"

namespace poseidon {

label_rules read_label_rules(const net_layer& layer, std::size_t classes, loss_norm otherwise) {
  using norm = ::caffe::LossParameter;
  const auto& p = layer.spec.loss_param();
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

label_rules read_accuracy_rules(const net_layer& layer, std::size_t classes) {
  const auto& p = layer.spec.accuracy_param();
  label_rules r;
  r.classes = static_cast<std::int32_t>(classes);
  r.ignores = p.has_ignore_label();
  r.ignored = p.ignore_label();
  return r;
}

std::string wrong_label(const std::string& layer, const std::string& type, std::size_t classes,
                        float label) {
  return "layer \"" + layer + "\" (" + type + "): a label is " + std::to_string(label) +
         ", the prediction has " + std::to_string(classes) + " classes (0 to " +
         std::to_string(classes - 1) +
         "). Do the data and the last layer's num_output belong together?";
}

void require_labels(const net_layer& layer, std::size_t places, const shape& scores,
                    const shape& labels) {
  if (static_cast<std::size_t>(count(labels)) == places) return;
  refuse_layer(layer, "it wants one label per prediction: " + std::to_string(places) +
                          " for a bottom of " + to_string(scores) + ", the label blob is " +
                          to_string(labels) + ".");
}

}  // namespace poseidon
