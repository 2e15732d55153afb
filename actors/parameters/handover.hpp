// actors/parameters/handover.hpp
//
// Which actors get which solver state where parameters are cut otherwise than before: from the actors that kept it. At the first clock
// of a resumed run that is the first node, which has read it. Arithmetic on two partitions; the node sends.
#pragma once
#include "actors/parameters/parameter_store.hpp"
#include "messages/frames.hpp"
#include "messages/training.hpp"
#include "models/net/net.hpp"
#include "models/plan/partition.hpp"

#include <memory>
#include <vector>

namespace poseidon {

/// Values `first` and following of one array of a chunk's solver state, and where they are from now on: on the chunk's owner and its
/// keepers.
struct history_piece {
  chunk_id chunk{};
  std::uint32_t slot = 0;
  std::uint64_t first = 0;
  payload values;
  bool here = false;            ///< this node's shard, state_keeper or factor_broadcast
  std::vector<worker_id> away;  ///< other nodes, by rising id
};

/// Two views as one of their nodes sees them.
struct view_step {
  const partition& before;
  const partition& now;
  worker_id former_self{};           ///< in the view before
  worker_id self{};                  ///< no_worker: it leaves
  std::vector<worker_id> newcomers;  ///< of the new view; they have nothing yet
  std::vector<worker_id> lost = {};  ///< of the view before: gone without having given anything
  bool zeroes_lost_state = false;    ///< state that is gone begins with zeros
};

/// Which member of the view before, of `members`, gives newcomers a chunk of the new view: each the same part, those that are lost
/// none. no_worker: all are.
[[nodiscard]] worker_id donor_of(chunk_id chunk, std::size_t members,
                                 const std::vector<worker_id>& lost = {});

/// Which member of the view before gives the solver state of one of its chunks, that a shard has: its owner, or where that is lost the
/// first of its keepers that is not. no_worker: all are, and the state is gone.
[[nodiscard]] worker_id giver_of(const partition& before, chunk_id id,
                                 const std::vector<worker_id>& lost);

/// The same; or where the state is gone and is to begin with zeros, a member that gives these.
[[nodiscard]] worker_id giver_of(const partition& before, chunk_id id,
                                 const std::vector<worker_id>& lost, bool zeroes_lost_state);
/// The zeros that this node gives, `slots` arrays for each of the chunks whose state is gone.
[[nodiscard]] std::shared_ptr<const chunk_histories> zeros_for_lost(const net& train,
                                                                    const view_step& step,
                                                                    std::size_t slots);

/// What this node had in the view before goes to those that have it in the new one. What a factor_broadcast had, every member had: a
/// donor gives it to the newcomers that need it. `copies`: of chunks that others owned.
[[nodiscard]] std::vector<history_piece> handover(
    const net& train, const view_step& step,
    const std::vector<std::shared_ptr<const chunk_histories>>& kept,
    const std::vector<std::shared_ptr<const chunk_histories>>& copies = {});

/// How many values of solver state the owner of a chunk receives, and each of its keepers, before it may use any; `slots`: arrays for each value.
/// `computes`: factor_broadcasts keep state.
[[nodiscard]] std::size_t state_values(const net& train, const partition& before,
                                       const partition& now, chunk_id chunk, std::size_t slots,
                                       bool computes);

}  // namespace poseidon
