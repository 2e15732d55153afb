// Which layers of a specification exist in a phase: filter_net of net_builder.hpp.
#include "models/net/net_builder.hpp"

#include <algorithm>

namespace poseidon {

namespace {

bool is_on(const net_state& state, const std::string& stage) {
  return std::find(state.stages.begin(), state.stages.end(), stage) != state.stages.end();
}

bool holds(const ::caffe::NetStateRule& rule, const net_state& state) {
  if (rule.has_phase() && rule.phase() != state.phase) return false;
  if (rule.has_min_level() && state.level < rule.min_level()) return false;
  if (rule.has_max_level() && state.level > rule.max_level()) return false;
  const auto on = [&](const std::string& stage) { return is_on(state, stage); };
  return std::all_of(rule.stage().begin(), rule.stage().end(), on) &&
         std::none_of(rule.not_stage().begin(), rule.not_stage().end(), on);
}

bool is_in(const ::caffe::LayerParameter& layer, const net_state& state,
           const spec_position& where) {
  if (layer.include_size() > 0 && layer.exclude_size() > 0)
    throw spec_error(where, "layer \"" + layer.name() + "\" (" + layer.type() +
                                "): it has include and exclude rules. Use one kind only.");
  const auto rule_holds = [&](const ::caffe::NetStateRule& rule) { return holds(rule, state); };
  if (layer.include_size() > 0)
    return std::any_of(layer.include().begin(), layer.include().end(), rule_holds);
  return std::none_of(layer.exclude().begin(), layer.exclude().end(), rule_holds);
}

}  // namespace

net_file filter_net(const net_file& file, const net_state& state) {
  net_file kept{file.spec, {}, file.directory};
  kept.spec.clear_layer();
  auto& said = *kept.spec.mutable_state();
  said.Clear();
  said.set_phase(state.phase);
  said.set_level(state.level);
  for (const auto& stage : state.stages) said.add_stage(stage);
  for (int i = 0; i < file.spec.layer_size(); ++i) {
    const auto& place = file.layer_places.at(static_cast<std::size_t>(i));
    if (!is_in(file.spec.layer(i), state, place)) continue;
    *kept.spec.add_layer() = file.spec.layer(i);
    kept.layer_places.push_back(place);
  }
  return kept;
}

}  // namespace poseidon
