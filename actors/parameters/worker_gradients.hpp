// actors/parameters/worker_gradients.hpp
//
// The gradients of one chunk that wait for those of the other workers, and their sum. A part of `server_shard`, without a
// mailbox. Gradients are added in the order of the workers, whatever the order in which they arrive: the reason why N nodes
// equal one, bit for bit.
#pragma once
#include "messages/ids.hpp"
#include "messages/link.hpp"
#include "messages/training.hpp"
#include "models/device/host_arithmetic.hpp"
#include "models/device/wire_format.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>

namespace poseidon {

class worker_gradients {
 public:
  struct of_clock {
    by_id<worker_id, payload> values;
    wire_format wire = wire_format::float32;  ///< step_mark::wire of all of them
  };

  /// `workers`: of the run.
  /// Errors   logic_bug: a second gradient of one worker for one clock.
  void add(const gradient_arrived& m, std::size_t workers);
  /// A worker whose program steps otherwise than that of `m` in its clock, and its mark; empty: there is none so far.
  [[nodiscard]] std::optional<std::pair<worker_id, step_mark>> steps_otherwise(
      const gradient_arrived& m) const;
  /// The gradients of that clock, once all workers' are there; they leave this object.
  [[nodiscard]] std::optional<of_clock> take(std::uint64_t clock);

 private:
  struct arriving {
    by_id<worker_id, payload> values;  // empty ones, too
    by_id<worker_id, bool> arrived;
    std::pair<worker_id, step_mark> step;  // of the first that has arrived
  };
  std::map<std::uint64_t, arriving> waiting_;
};

/// Whether no worker has a gradient of the chunk.
[[nodiscard]] bool is_nothing(const worker_gradients::of_clock& gradients);

/// The sum of a clock's gradients, which have this format. Empty ones, of workers that have none, count as zeros; not all are
/// empty. Where there is one alone it is returned as it is; a sum is written to `scratch`, which has as many values as the chunk.
[[nodiscard]] std::span<const float> sum_of(const worker_gradients::of_clock& gradients,
                                            wire_format format, const host_arithmetic& arithmetic,
                                            std::span<float> scratch);

}  // namespace poseidon
