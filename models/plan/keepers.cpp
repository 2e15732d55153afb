#include "models/plan/keepers.hpp"

#include <algorithm>

namespace poseidon {

bool has_solver_state(const net_parameter& p) {
  return is_learned(p) && !p.average_momentum;
}

void set_keepers(partition& cut, std::span<const net_parameter> parameters, std::uint32_t survive) {
  const auto others = static_cast<std::uint32_t>(cut.by_owner.size() - 1);
  for (auto& c : cut.chunks) {
    const bool has_state = has_solver_state(parameters[value(c.parameter)]);
    c.keepers = has_state && c.owner != every_worker ? std::min(survive, others) : 0;
  }
}

std::vector<worker_id> keepers_of(const partition& cut, chunk_id id) {
  std::vector<worker_id> out;
  const auto& c = cut.chunks[id];
  for (std::uint32_t k = 1; k <= c.keepers; ++k)
    out.push_back(as_id<worker_id>((value(c.owner) + k) % cut.by_owner.size()));
  return out;
}

bool is_keeper(const partition& cut, chunk_id id, worker_id w) {
  const auto& c = cut.chunks[id];
  const auto workers = cut.by_owner.size();
  if (c.keepers == 0 || value(w) >= workers) return false;
  const auto behind = (value(w) + workers - value(c.owner)) % workers;
  return behind >= 1 && behind <= c.keepers;
}

bool has_state(const partition& cut, chunk_id id, worker_id w) {
  const auto owner = cut.chunks[id].owner;
  return owner == every_worker || owner == w || is_keeper(cut, id, w);
}

}  // namespace poseidon
