#include "models/net/layer_rules.hpp"

#include "models/words.hpp"

namespace poseidon {

std::string layer_question::bottom_text(std::size_t i) const {
  const auto& name = i < names.size() ? names[i] : spec.bottom(static_cast<int>(i));
  return "\"" + name + "\" " + to_string(bottoms.at(i));
}

void layer_question::fail(const std::string& text) const {
  throw spec_error(where, "layer \"" + spec.name() + "\" (" + spec.type() + "): " + text);
}

std::size_t layer_question::axis_of(std::int64_t axis, std::size_t i) const {
  const auto axes = static_cast<std::int64_t>(bottoms.at(i).size());
  if (axis < -axes || axis >= axes)
    fail("axis " + std::to_string(axis) + " is out of range: its bottom " + bottom_text(i) +
         " has " + std::to_string(axes) + " axes, counted from 0.");
  return static_cast<std::size_t>(axis < 0 ? axis + axes : axis);
}

const std::vector<std::string>& filler_types() {
  static const std::vector<std::string> words = {
      "constant", "uniform", "gaussian", "positive_unitball", "xavier", "msra", "bilinear"};
  return words;
}

void check_filler(const layer_question& q, const ::caffe::FillerParameter& filler) {
  for (const auto& word : filler_types())
    if (filler.type() == word) return;
  auto hint = did_you_mean(filler.type(), filler_types());
  if (hint.empty()) hint = " Known fillers: " + comma_list(filler_types()) + ".";
  q.fail("it has a filler of the type \"" + filler.type() + "\", which is none of Caffe's." + hint);
}

layer_answer same_shape_rule(const layer_question& q) {
  return {std::vector<shape>(q.tops, q.bottoms.at(0)), {}};
}

layer_answer silence_rule(const layer_question&) {
  return {};
}

}  // namespace poseidon
