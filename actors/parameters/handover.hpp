// actors/parameters/handover.hpp
//
// Which actors get which solver state: at the first clock of a resumed run, from worker 0, which has read it; where parameters
// are cut otherwise than before, from the actors that kept it. Arithmetic on two partitions; the node sends.
#pragma once
#include "actors/parameters/parameter_store.hpp"
#include "messages/frames.hpp"
#include "messages/training.hpp"
#include "models/net/net.hpp"
#include "models/plan/partition.hpp"

#include <memory>
#include <vector>

namespace poseidon {

/// Values `first` and following of one array of a chunk's solver state, and where they are kept from now on.
struct history_piece {
  chunk_id chunk{};
  std::uint32_t slot = 0;
  std::uint64_t first = 0;
  payload values;
  bool here = false;            ///< this node's shard or factor_broadcast
  std::vector<worker_id> away;  ///< other nodes, by rising id
};

/// Solver state that worker `self` of `workers` has read: all pieces of chunk `id`, by slot.
[[nodiscard]] std::vector<history_piece> first_history(
    const partition& cut, chunk_id id, const std::vector<std::shared_ptr<parameter_arrays>>& slots,
    worker_id self, std::size_t workers);

/// What worker `self` kept under `before` goes to the shard or the nodes that keep it under `now`. What a factor_broadcast
/// kept, every node has: nothing of it travels.
[[nodiscard]] std::vector<history_piece> handover(
    const net& train, const partition& before, const partition& now,
    const std::vector<std::shared_ptr<const chunk_histories>>& kept, worker_id self,
    std::size_t workers);

}  // namespace poseidon
