// actors/parameters/factor_store.hpp
//
// The factors of one layer: those of all workers for a ring of clocks, u [workers * rows, outputs] and
// v [workers * rows, inputs], each in one piece and in worker order, so that one matrix product takes them all. The
// streams pack this node's own into their place, links read the others' straight into theirs, and what is sent to the
// peers is this memory: nothing is copied.
//
// At staleness s there are 2 s + 2 clocks. What a peer has of clock c + 2 s + 2 to send, it has computed with
// everybody's factors of c + s + 1, this node's among them, and those were computed with all of clock c: nobody needs
// that any more. And this node packs clock c + 2 s + 2 over its own of clock c when it has everybody's of c + s + 1,
// which nobody sends before he has read this node's of c.
//
// At staleness 0 a device that makes updates by itself reads clock c until its update is over there. That it is when
// clock c + 2 comes: whoever sends it has had this node's factors of c + 1, and the kernels that made those have waited
// for the update.
//
// Threads: own() and link receivers' places are each written by one thread; factor_broadcast reads a clock when all of
// it is there, and says sent(), which link receivers ask for.
#pragma once
#include "messages/ids.hpp"
#include "models/device/device.hpp"
#include "models/device/factors.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace poseidon {

struct factor_spans {
  std::span<float> u, v;
};

/// By worker, then pass of a clock, counted over micro-batches, then replicas: how many rows its factors have.
using factor_rows = std::vector<std::vector<std::size_t>>;

class factor_store {
 public:
  /// `pass`: of one micro-batch and replica; its rows do not count. `memory`: device::host_memory(); empty: any.
  factor_store(const factor_shape& pass, const factor_rows& rows, clock_id first,
               std::uint64_t staleness = 0, std::shared_ptr<std::pmr::memory_resource> memory = {});

  [[nodiscard]] factor_shape of_node(worker_id worker) const;
  [[nodiscard]] factor_shape of_all() const;  ///< what the product is over

  /// The place of pass `index` of a worker.
  [[nodiscard]] factor_spans pass(clock_id clock, worker_id worker, std::size_t index);
  /// The place of the frame of a worker with `rows` rows that begins with value `first`.
  [[nodiscard]] std::span<float> piece(clock_id clock, worker_id worker, std::size_t rows,
                                       std::size_t first);
  /// A worker that has sent fewer rows than there is room for: the others become zero and add nothing.
  void clear_behind(clock_id clock, worker_id worker, std::size_t rows);
  [[nodiscard]] factor_spans all(clock_id clock);

  /// This node's factors of all clocks before `next` are on their way. Said before anybody can have them, so
  /// that a peer who speaks of a later clock is wrong.
  void set_sent(clock_id next) { sent_.store(value(next), std::memory_order_release); }
  [[nodiscard]] std::uint64_t sent() const { return sent_.load(std::memory_order_acquire); }

 private:
  struct of_clock {
    host_values u, v;
  };
  factor_spans rows_of(clock_id clock, std::size_t first, std::size_t rows);

  std::shared_ptr<std::pmr::memory_resource> memory_;  // outlives the ring
  factor_shape shape_;                                 // of a row
  /// By worker, then pass: its first row among those of all; behind the last pass of the last worker stands their number.
  std::vector<std::vector<std::size_t>> begins_;
  std::vector<of_clock> ring_;  // by clock modulo its size
  std::atomic<std::uint64_t> sent_;
};

/// Of a node, by layer; those on the factor route.
using factor_stores = std::map<std::uint32_t, std::shared_ptr<factor_store>>;

}  // namespace poseidon
