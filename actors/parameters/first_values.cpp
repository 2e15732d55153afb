#include "actors/parameters/first_values.hpp"

#include "models/plan/keepers.hpp"

namespace poseidon {

std::uint64_t first_value_bytes(const partition& cut, std::size_t slots, worker_id self, bool gives,
                                std::size_t workers) {
  const std::uint64_t receivers = gives ? workers - 1 : 1;
  std::uint64_t total = 0;
  for (const auto id : cut.chunks.ids()) {
    const std::uint64_t bytes = cut.chunks[id].count * sizeof(float);
    total += bytes * receivers;
    // Solver state goes to the nodes that have it from now on.
    for (const auto w : id_range<worker_id>(workers))
      if ((w == self) != gives && has_state(cut, id, w)) total += bytes * slots;
  }
  return total;
}

}  // namespace poseidon
