// actors/parameters/factor_store.hpp
//
// The factors of one layer: those of all workers for a ring of clocks, u [workers * rows, outputs] and
// v [workers * rows, inputs], each contiguous and in worker order, so that one matrix product takes all of them. The
// streams pack this node's factors into their place, links read those of the peers straight into theirs, and links send
// from this memory: nothing is copied.
//
// At staleness s there are 2 s + 2 clocks. A peer that sends factors of clock c + 2 s + 2 has computed them with
// the factors of all nodes of c + s + 1, and every node has computed those with all factors of clock c: no node needs
// clock c any more. This node packs clock c + 2 s + 2 over its own clock c when it has all factors of c + s + 1, and no
// peer sends those before it has read this node's factors of c.
//
// At staleness 0 a device that makes updates reads clock c until its update has finished. It has finished when
// clock c + 2 arrives: its sender has had this node's factors of c + 1, and the kernels that computed those have waited
// for the update.
//
// Threads: each pass() is written by one stream, or this node's place is filled by its program; each piece() of a peer by its
// link's receiver; factor_broadcast reads a clock when all of it has landed, and calls set_sent() for link receivers, which call sent().
#pragma once
#include "messages/ids.hpp"
#include "models/device/device.hpp"
#include "models/device/factors.hpp"
#include "models/indexed.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace poseidon {

struct factor_spans {
  std::span<float> u, v;
};

/// Rows of the factors by worker, then pass of a clock, counted over micro-batches, then replicas.
using factor_rows = by_id<worker_id, std::vector<std::size_t>>;

class factor_store {
 public:
  /// `pass`: factors of one micro-batch and replica; its rows are not used. `memory`: device::host_memory(); empty:
  /// ordinary memory.
  factor_store(const factor_shape& pass, const factor_rows& rows, clock_id first,
               std::uint64_t staleness = 0, std::shared_ptr<std::pmr::memory_resource> memory = {});

  [[nodiscard]] factor_shape of_node(worker_id worker) const;
  [[nodiscard]] factor_shape of_all() const;  ///< of the product over all workers
  [[nodiscard]] std::size_t workers() const { return begins_.size(); }

  /// The place of pass `index` of a worker.
  [[nodiscard]] factor_spans pass(clock_id clock, worker_id worker, std::size_t index);
  /// The place of the frame of a worker with `rows` rows that begins with value `first`.
  [[nodiscard]] std::span<float> piece(clock_id clock, worker_id worker, std::size_t rows,
                                       std::size_t first);
  /// Sets the rows of a worker behind its first `rows` to zero, so that they add nothing.
  void clear_behind(clock_id clock, worker_id worker, std::size_t rows);
  [[nodiscard]] factor_spans all(clock_id clock);

  /// Copies factors of a program to the place of worker `self`, this node; they may have fewer rows than there is room for. u
  /// holds rows * outputs values, v rows * inputs.
  void fill(clock_id clock, worker_id self, std::span<const float> u, std::span<const float> v);
  /// How many rows worker `self`, this node, sends: those of fill(); where its streams pack them, all that it has room for.
  [[nodiscard]] std::size_t rows_of_node(clock_id clock, worker_id self) const;

  /// This node's factors of all clocks before `next` are being sent. Called before a peer can have them, so
  /// a peer that sends factors of a later clock is wrong.
  void set_sent(clock_id next) { sent_.store(value(next), std::memory_order_release); }
  [[nodiscard]] std::uint64_t sent() const { return sent_.load(std::memory_order_acquire); }

 private:
  struct of_clock {
    host_values u, v;
    std::optional<std::size_t> filled = std::nullopt;  ///< rows, by fill()
  };
  factor_spans rows_of(clock_id clock, std::size_t first, std::size_t rows);

  std::shared_ptr<std::pmr::memory_resource> memory_;  // outlives the ring
  factor_shape shape_;                                 // its rows are not used
  /// By worker, then pass: its first row among those of all; behind the last pass of the last worker stands their number.
  by_id<worker_id, std::vector<std::size_t>> begins_;
  std::vector<of_clock> ring_;  // by clock modulo its size
  std::atomic<std::uint64_t> sent_;
};

/// The stores of a node, by layer on the factor route.
using factor_stores = std::map<layer_id, std::shared_ptr<factor_store>>;

}  // namespace poseidon
