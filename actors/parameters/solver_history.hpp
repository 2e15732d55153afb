// actors/parameters/solver_history.hpp
//
// The solver state of the chunks that one actor updates: server_shard its own, factor_broadcast those of its layer. The
// state of parameters that a device updates lies on the device and is copied when it is read; all other lies on the host.
//
// Where a run is to survive the loss of nodes, those that are left go back to a version that each of them has as a whole. At
// staleness s a chunk is at most s + 1 versions ahead of it. So the state of that many versions before the newest is kept, each
// as a copy that is made before the rule changes the arrays in place. State on a device has no copies.
#pragma once
#include "messages/training.hpp"
#include "models/device/device_updates.hpp"
#include "models/device/state_array.hpp"
#include "models/plan/partition.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace poseidon {

class solver_history {
 public:
  /// `cut` outlives it; `slots`: history_count(). `updates`: null where the host updates everything, else used as long as this.
  /// `former`: how many versions before the newest are kept.
  solver_history(const partition& cut, std::size_t slots, device_updates* updates = nullptr,
                 std::uint64_t former = 0);

  /// Adds zeros for a chunk; without `values` no memory, for a device that does not compute.
  void add(chunk_id chunk, bool values = true);

  /// The chunk's first update waits until this number of values of its state has been written.
  void await(chunk_id chunk, std::size_t values) { missing_[chunk] = values; }
  [[nodiscard]] bool is_complete(chunk_id chunk) const {
    const auto it = missing_.find(chunk);
    return it == missing_.end() || it->second == 0;
  }

  /// That of all chunks.
  [[nodiscard]] bool is_complete() const {
    return std::all_of(missing_.begin(), missing_.end(),
                       [](const auto& of) { return of.second == 0; });
  }

  [[nodiscard]] bool on_device(parameter_id parameter) const {
    return updates_ != nullptr && updates_->holds(value(parameter));
  }
  [[nodiscard]] parameter_part part(chunk_id chunk) const;

  /// The arrays of a chunk at `version`, by slot, for the update that makes the next version of them: in place, or beside them
  /// where former versions are kept. Empty spans where the host has no values.
  [[nodiscard]] std::vector<state_array> to_update(chunk_id chunk, std::uint64_t version);
  /// Writes the state that a resumed run or changed routes begin with, from value `first` of the chunk on.
  void write(chunk_id chunk, std::uint32_t slot, std::size_t first, std::span<const float> values);

  /// Calls f(chunk, slot, values) for all of it, by chunk, then slot; `values` is a copy.
  template <class F>
  void for_each(F&& f) const {
    for (const auto& [chunk, slots] : chunks_)
      for (std::uint32_t slot = 0; slot < slots.size(); ++slot) f(chunk, slot, read(chunk, slot));
  }
  /// Where members have been lost, gradients of the view before may still come. They change nothing any more.
  [[nodiscard]] bool is_released() const { return released_; }
  /// Gives away all of it, as it was at `version`; empty: the newest.
  /// Errors   logic_bug: a chunk is not complete. With both versions: that of a chunk is no longer kept, or lies on a device.
  [[nodiscard]] std::shared_ptr<chunk_histories> release(
      std::optional<version_id> version = std::nullopt);

 private:
  using arrays = std::vector<std::vector<float>>;
  [[nodiscard]] bool on_device(chunk_id chunk) const {
    return on_device(cut_.chunks[chunk].parameter);
  }
  [[nodiscard]] std::vector<float> read(chunk_id chunk, std::uint32_t slot) const;
  [[nodiscard]] arrays room_for(chunk_id chunk);
  [[nodiscard]] arrays take(chunk_id chunk, std::uint64_t version);

  struct past {
    std::uint64_t next = 0;  // the version that the newest arrays belong to
    std::deque<std::pair<std::uint64_t, arrays>> kept;  // by rising version
  };

  const partition& cut_;
  const std::size_t slots_;
  device_updates* const updates_;
  const std::uint64_t former_;
  chunk_histories chunks_;
  std::size_t values_ = 0;  // of all chunks and slots, on the host
  bool released_ = false;
  std::map<chunk_id, std::size_t> missing_;  // values, by chunk
  std::map<chunk_id, past> pasts_;           // of chunks that have been updated
};

}  // namespace poseidon
