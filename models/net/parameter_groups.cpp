#include "models/net/parameter_groups.hpp"

#include <algorithm>

namespace poseidon {

namespace {

/// By parameter: the first layer of its group.
std::vector<std::size_t> first_layers(const net& n) {
  std::vector<std::size_t> first(n.parameters.size());
  for (std::size_t p = 0; p < first.size(); ++p) first[p] = n.parameters[p].layer;
  // A layer pulls the groups of its parameters together; what it pulls along may concern layers before.
  for (const auto& layer : n.layers) {
    auto lowest = n.layers.size();
    for (const auto p : layer.parameters) lowest = std::min(lowest, first[p]);
    for (const auto p : layer.parameters)
      std::replace(first.begin(), first.end(), std::size_t{first[p]}, lowest);
  }
  return first;
}

bool writes(const net& n, const net_layer& layer) {
  for (std::size_t slot = 0; slot < layer.parameters.size(); ++slot)
    if (n.parameters[layer.parameters[slot]].average_momentum ||
        (layer.needs_backward && layer.learn[slot] && is_learned(n, layer.parameters[slot])))
      return true;
  return false;
}

}  // namespace

std::vector<parameter_group> parameter_groups(const net& n) {
  const auto first = first_layers(n);
  std::vector<parameter_group> groups;
  for (std::size_t l = 0; l < n.layers.size(); ++l) {
    const auto& layer = n.layers[l];
    if (layer.parameters.empty()) continue;
    const auto name = first[layer.parameters.front()];
    const auto known = std::find_if(groups.begin(), groups.end(), [&](const parameter_group& g) {
      return g.layers.front() == name;
    });
    auto& group = known == groups.end() ? groups.emplace_back() : *known;
    group.layers.push_back(l);
    if (writes(n, layer)) group.writers.push_back(l);
  }
  for (auto& group : groups) {
    for (std::size_t p = 0; p < n.parameters.size(); ++p)
      if (first[p] == group.layers.front())
        (is_updated(n, p) ? group.learned : group.frozen).push_back(as_id<parameter_id>(p));
    if (group.writers.empty() && !group.learned.empty())
      group.writers.push_back(group.layers.front());
  }
  return groups;
}

}  // namespace poseidon
