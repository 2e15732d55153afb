// models/plan/keepers.hpp
//
// Which nodes have a copy of the solver state of another node's chunks, so that nothing is lost when that node is: workers
// o + 1 to o + K keep what worker o owns, modulo their number. A ring: where two of N nodes are lost at the same time and K is 1,
// state is lost only if they are neighbours. Were each node's chunks dealt out to all others, every such pair would lose some.
#pragma once
#include "models/plan/partition.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace poseidon {

/// Whether an update of this parameter needs more than its value, like a momentum. A running statistic does not, so nothing of it is
/// lost with its owner: every worker has the value.
[[nodiscard]] bool has_solver_state(const net_parameter& p);

/// Gives each chunk that has solver state its number of keepers: `survive`, or all other workers if there are fewer.
void set_keepers(partition& cut, std::span<const net_parameter> parameters, std::uint32_t survive);

/// The keepers of a chunk, in the order of the ring. None where every worker has its state.
[[nodiscard]] std::vector<worker_id> keepers_of(const partition& cut, chunk_id id);
[[nodiscard]] bool is_keeper(const partition& cut, chunk_id id, worker_id w);

/// Whether worker `w` has a chunk's solver state, as its owner, as a keeper, or because every worker has it.
[[nodiscard]] bool has_state(const partition& cut, chunk_id id, worker_id w);

}  // namespace poseidon
