#include "actors/parameters/first_values.hpp"

namespace poseidon {

std::uint64_t first_value_bytes(const partition& cut, std::size_t slots, worker_id self, bool gives,
                                std::size_t workers) {
  const std::uint64_t receivers = gives ? workers - 1 : 1;
  std::uint64_t total = 0;
  for (const auto& c : cut.chunks) {
    const std::uint64_t bytes = c.count * sizeof(float);
    total += bytes * receivers;
    // Solver state goes to the actors that keep it.
    if (c.owner == every_worker)
      total += bytes * slots * receivers;
    else if ((c.owner == self) != gives)
      total += bytes * slots;
  }
  return total;
}

}  // namespace poseidon
