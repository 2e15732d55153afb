#include "models/net/learned_parameters.hpp"

#include "models/net/parameter_groups.hpp"

namespace poseidon {

learned_parameters learned_parameters_of(const net& n) {
  learned_parameters out;
  out.parameters = by_id<parameter_id, net_parameter>(n.parameters);
  for (const auto& p : n.parameters) out.layers.push_back(n.layers[p.layer].name);
  for (const auto layer : first_uses(n)) out.first_uses.push_back(as_id<layer_id>(layer));
  for (auto& group : parameter_groups(n)) {
    const auto first = group.layers.front();
    out.groups.push_back({n.layers[first].name, as_id<layer_id>(first), group.writers.size(),
                          std::move(group.learned), std::move(group.frozen)});
  }
  return out;
}

}  // namespace poseidon
