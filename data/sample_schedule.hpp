// data/sample_schedule.hpp
//
// Which samples a pass works on: arithmetic on global sample indices, the same on every node. N
// nodes read what one node with iter_size N reads, and two replicas what two nodes read, so their
// sums can be equal. Where nodes have different shares of the batch, a clock's samples are the same ones in the same
// order, cut elsewhere.
#pragma once
#include "data/batch_shares.hpp"

#include <cstdint>

namespace poseidon {

struct sample_schedule {
  std::uint64_t workers = 1;        ///< P, nodes that train
  std::uint64_t micro_batches = 1;  ///< I, of one node in a clock: iter_size
  std::uint64_t replicas = 1;       ///< R, on each node
  std::uint64_t batch = 1;          ///< b, samples of one replica in one pass
  std::uint64_t start = 0;          ///< the first sample of clock 0: where a resumed run goes on
  /// By worker, or empty. They say micro-batches, replicas and batch of each node, where there are any.
  node_shares shares = {};

  /// Samples that one clock uses up, on all workers together.
  [[nodiscard]] std::uint64_t samples_per_clock() const;
  /// Passes that one clock has, on all workers together.
  [[nodiscard]] std::uint64_t passes_per_clock() const;
};

/// One replica's pass of a training iteration.
struct train_pass {
  std::uint64_t clock = 0;        ///< since the schedule's start
  std::uint64_t worker = 0;       ///< below P
  std::uint64_t micro_batch = 0;  ///< below I
  std::uint64_t replica = 0;      ///< below R
};

/// start + ((clock * P + worker) * I + micro_batch) * R * b + replica * b; with shares the same over the samples of the
/// workers before.
/// Errors   std::invalid_argument if worker, micro_batch or replica is beyond the
/// schedule's.
[[nodiscard]] std::uint64_t first_sample(const sample_schedule& s, const train_pass& p);

/// Passes of the same clock that come after this one, in the order of their samples, which is the order
/// in which gradients are added.
[[nodiscard]] std::uint64_t passes_after(const sample_schedule& s, const train_pass& p);

/// One node's part of each test phase: batch k of T belongs to worker k % P, and there to the
/// replicas in turn. A pass is one batch on one replica.
struct test_share {
  std::uint64_t batches = 0;  ///< T, test_iter: of the whole phase, over all workers
  std::uint64_t workers = 1, self = 0, replicas = 1;
  std::uint64_t batch_size = 1;  ///< b, samples

  /// Passes of one replica in each phase.
  [[nodiscard]] std::uint64_t passes(std::uint64_t replica) const;
  /// Batch of the whole phase that is pass `n` of this replica, n < passes(replica).
  [[nodiscard]] std::uint64_t batch(std::uint64_t replica, std::uint64_t n) const;
  /// First sample of that pass in the t-th phase: (t * T + k) * b. The test net reads on from where
  /// its last phase stopped, as in Caffe.
  [[nodiscard]] std::uint64_t first_sample(std::uint64_t phase, std::uint64_t replica,
                                           std::uint64_t n) const;
};

/// For a node whose source holds its own part of the data instead of the whole: in each clock it takes the next records
/// of its part, one for each of its samples, and so uses each record once before it uses any a second time. Where the parts
/// are consecutive blocks of the same number of samples, the nodes read the records that they would read of the whole.
struct own_part {
  std::uint64_t workers = 1;  ///< P; 1: the source is the whole
  std::uint64_t block = 1;    ///< samples of one node in one clock: I * R * b

  [[nodiscard]] constexpr std::uint64_t position(std::uint64_t sample) const {
    return sample / (workers * block) * block + sample % block;
  }
};

/// Where in the source a global sample lies. Reading goes on at the start in the middle of a batch.
[[nodiscard]] constexpr std::uint64_t epoch_position(std::uint64_t sample, std::uint64_t size) {
  return sample % size;
}

}  // namespace poseidon
