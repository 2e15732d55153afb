// actors/parameters/lowrank_turns.hpp
//
// What links have to know of a layer that goes by low rank: who owns its sums, how long its frames are, and whose turn it is. The
// frames of a layer alternate strictly: all workers' P of a clock, the owner's, all workers' Q, the owner's, then those of the next
// clock. A worker begins none of these before the one before it has come back, so no more than one frame of a peer waits.
//
// Threads: lowrank_exchange writes, links' receivers read.
#pragma once
#include "messages/ids.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

namespace poseidon {

struct lowrank_turns {
  lowrank_turns(worker_id of, std::size_t in_first, std::size_t in_second, clock_id begin)
      : owner(of), first_bytes(in_first), second_bytes(in_second), told_(step(begin, false)) {}

  const worker_id owner;
  /// Of a frame of P, with what goes beside it; of Q.
  const std::size_t first_bytes, second_bytes;

  /// P and Q of all clocks are counted one after the other.
  [[nodiscard]] static constexpr std::uint64_t step(clock_id clock, bool second) {
    return 2 * value(clock) + (second ? 1 : 0);
  }
  /// This node has begun to send its frames of that step. Called before a peer can have them, so a peer that answers an earlier one
  /// is wrong.
  void set_told(clock_id clock, bool second) {
    told_.store(step(clock, second) + 1, std::memory_order_release);
  }
  /// The least step of which this node has sent nothing.
  [[nodiscard]] std::uint64_t next() const { return told_.load(std::memory_order_acquire); }

 private:
  std::atomic<std::uint64_t> told_;
};

/// By layer on a lowrank route.
using all_lowrank_turns = std::map<layer_id, std::shared_ptr<lowrank_turns>>;

}  // namespace poseidon
