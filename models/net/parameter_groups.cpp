#include "models/net/parameter_groups.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

namespace poseidon {

namespace {

/// The first layer of the group of `layer`, where each entry leads to a layer before it, or is the first one itself.
std::size_t first_of(std::vector<std::size_t>& leads_to, std::size_t layer) {
  while (leads_to[layer] != layer) layer = leads_to[layer] = leads_to[leads_to[layer]];
  return layer;
}

/// By parameter: the first layer of its group.
std::vector<std::size_t> first_layers(const net& n) {
  std::vector<std::size_t> leads_to(n.layers.size());
  std::iota(leads_to.begin(), leads_to.end(), std::size_t{0});
  // A layer pulls the groups of its parameters together; what it pulls along may concern layers before.
  for (const auto& layer : n.layers) {
    auto lowest = n.layers.size();
    for (const auto p : layer.parameters)
      lowest = std::min(lowest, first_of(leads_to, n.parameters[p].layer));
    for (const auto p : layer.parameters)
      leads_to[first_of(leads_to, n.parameters[p].layer)] = lowest;
  }
  std::vector<std::size_t> first;
  for (const auto& p : n.parameters) first.push_back(first_of(leads_to, p.layer));
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
  std::vector<std::optional<std::size_t>> place(n.layers.size());  // of a group, by its first layer
  for (std::size_t l = 0; l < n.layers.size(); ++l) {
    const auto& layer = n.layers[l];
    if (layer.parameters.empty()) continue;
    auto& known = place[first[layer.parameters.front()]];
    if (!known) {
      known = groups.size();
      groups.emplace_back();
    }
    auto& group = groups[*known];
    group.layers.push_back(l);
    if (writes(n, layer)) group.writers.push_back(l);
  }
  for (std::size_t p = 0; p < n.parameters.size(); ++p) {
    auto& group = groups[place[first[p]].value()];
    (is_updated(n, p) ? group.learned : group.frozen).push_back(as_id<parameter_id>(p));
  }
  for (auto& group : groups)
    if (group.writers.empty() && !group.learned.empty())
      group.writers.push_back(group.layers.front());
  return groups;
}

}  // namespace poseidon
