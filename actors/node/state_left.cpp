#include "actors/node/state_left.hpp"

#include "actors/parameters/handover.hpp"
#include "models/plan/keepers.hpp"

#include <algorithm>

namespace poseidon {

std::vector<std::string> layers_without_state(const node_core& core,
                                              const frames::next_view& next) {
  std::vector<std::string> out;
  const auto view = following(core.view(), next);
  const auto lost = view.former_lost();
  if (lost.empty() || state_arrays_at(*core.setup.run, value(next.first_clock)) == 0) return out;
  const auto kept = core.kept.cut_of(begins_again(core.view(), next));
  const auto& cut = kept ? *kept : core.run.store()->cut();
  const auto& net = core.run.train();
  for (const auto id : cut.chunks.ids()) {
    const auto& c = cut.chunks[id];
    if (c.owner == every_worker || !has_solver_state(net.parameters[value(c.parameter)]) ||
        giver_of(cut, id, lost) != no_worker)
      continue;
    const auto& layer = net.layers[net.parameters[value(c.parameter)].layer].name;
    if (std::find(out.begin(), out.end(), layer) == out.end()) out.push_back(layer);
  }
  return out;
}

}  // namespace poseidon
