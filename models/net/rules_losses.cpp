// Losses and scores: predictions against labels.
#include "models/net/layer_rules.hpp"
#include "models/words.hpp"

namespace poseidon {

namespace {

void check_same_batch(const layer_question& q) {
  q.require(!q.bottoms[0].empty() && !q.bottoms[1].empty() && q.bottoms[0][0] == q.bottoms[1][0],
            "its bottoms " + q.bottom_text(0) + " and " + q.bottom_text(1) +
                " must have the same first dimension, one label per sample.");
}

/// Without the axis of classes, there must be one label for each prediction.
void check_labels(const layer_question& q, std::size_t axis) {
  const auto& scores = q.bottoms[0];
  const auto places = count(scores, 0, axis) * count(scores, axis + 1, scores.size());
  const auto labels = count(q.bottoms[1]);
  q.require(places == labels, "its bottom " + q.bottom_text(0) + " needs " +
                                  plural(static_cast<std::size_t>(places), "label") +
                                  " (all axes but axis " + std::to_string(axis) +
                                  ", the classes), but " + q.bottom_text(1) + " has " +
                                  std::to_string(labels) + ".");
}

/// A scalar, followed by the tops that the rule adds.
layer_answer scalar(const layer_question& q, const shape& second = {}) {
  layer_answer a{{shape{}}, {}};
  if (q.tops > 1) a.tops.push_back(second);
  return a;
}

}  // namespace

layer_answer pair_loss_rule(const layer_question& q) {
  check_same_batch(q);
  return scalar(q);
}

layer_answer euclidean_loss_rule(const layer_question& q) {
  check_same_batch(q);
  q.require(count(q.bottoms[0]) == count(q.bottoms[1]), "its bottoms " + q.bottom_text(0) +
                                                            " and " + q.bottom_text(1) +
                                                            " differ in values per sample.");
  return scalar(q);
}

layer_answer sigmoid_loss_rule(const layer_question& q) {
  check_same_batch(q);
  q.require(count(q.bottoms[0]) == count(q.bottoms[1]), "its bottoms " + q.bottom_text(0) +
                                                            " and " + q.bottom_text(1) +
                                                            " must have equally many values.");
  return scalar(q);
}

layer_answer softmax_loss_rule(const layer_question& q) {
  check_same_batch(q);
  check_labels(q, q.axis_of(q.spec.softmax_param().axis()));
  return scalar(q, q.bottoms[0]);
}

layer_answer infogain_loss_rule(const layer_question& q) {
  check_same_batch(q);
  const auto axis = q.axis_of(q.spec.infogain_loss_param().axis());
  check_labels(q, axis);
  const auto classes = q.bottoms[0][axis];
  if (q.bottoms.size() > 2)
    q.require(count(q.bottoms[2]) == classes * classes,
              "its bottom " + q.bottom_text(2) + " must have " + std::to_string(classes) + " x " +
                  std::to_string(classes) + " values, one per pair of classes.");
  else
    q.require(q.spec.infogain_loss_param().has_source(),
              "it needs the infogain matrix: a third bottom, or source.");
  return scalar(q, q.bottoms[0]);
}

layer_answer multinomial_loss_rule(const layer_question& q) {
  check_same_batch(q);
  q.require(count(q.bottoms[1], 1, q.bottoms[1].size()) == 1,
            "its bottom " + q.bottom_text(1) + " must hold one label per sample.");
  return scalar(q);
}

layer_answer contrastive_loss_rule(const layer_question& q) {
  check_same_batch(q);
  const auto per_sample = [&](std::size_t i) {
    return count(q.bottoms[i], 1, q.bottoms[i].size());
  };
  q.require(per_sample(0) == per_sample(1), "its bottoms " + q.bottom_text(0) + " and " +
                                                q.bottom_text(1) + " must have one shape.");
  q.require(
      q.bottoms[0].size() >= 2 && count(q.bottoms[0], 2, q.bottoms[0].size()) == 1,
      "its bottom " + q.bottom_text(0) + " must be a vector per sample (height and width 1).");
  q.require(!q.bottoms[2].empty() && q.bottoms[2][0] == q.bottoms[0][0] && per_sample(2) == 1,
            "its bottom " + q.bottom_text(2) + " must hold one value per sample: similar or not.");
  return scalar(q);
}

layer_answer accuracy_rule(const layer_question& q) {
  const auto& p = q.spec.accuracy_param();
  const auto axis = q.axis_of(p.axis());
  check_labels(q, axis);
  const auto classes = q.bottoms[0][axis];
  q.require(p.top_k() >= 1 && p.top_k() <= classes,
            "top_k is " + std::to_string(p.top_k()) + ", its bottom " + q.bottom_text(0) + " has " +
                std::to_string(classes) + " classes.");
  return scalar(q, {classes});
}

}  // namespace poseidon
