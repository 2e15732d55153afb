// actors/parameters/solver_history.hpp
//
// The solver state of the chunks that one actor updates: server_shard its own, factor_broadcast those of its layer. The
// state of parameters that a device updates lies on the device and is copied when it is read; all other lies on the host.
#pragma once
#include "messages/training.hpp"
#include "models/device/device_updates.hpp"
#include "models/plan/partition.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace poseidon {

class solver_history {
 public:
  /// `cut` outlives it; `slots`: history_count(). `updates`: null where the host updates everything.
  solver_history(const partition& cut, std::size_t slots,
                 std::shared_ptr<device_updates> updates = {});

  /// Adds zeros for a chunk; without `values` no memory, for a device that does not compute.
  void add(chunk_id chunk, bool values = true);

  [[nodiscard]] bool on_device(parameter_id parameter) const {
    return updates_ != nullptr && updates_->holds(value(parameter));
  }
  [[nodiscard]] parameter_part part(chunk_id chunk) const;

  /// For device::update(): by slot. Empty spans where the host has no values.
  [[nodiscard]] std::vector<std::span<float>> of(chunk_id chunk);
  /// Writes the state that a resumed run or changed routes begin with, from value `first` of the chunk on.
  void write(chunk_id chunk, std::uint32_t slot, std::size_t first, std::span<const float> values);

  /// Calls f(chunk, slot, values) for all of it, by chunk, then slot; `values` is a copy.
  template <class F>
  void for_each(F&& f) const {
    for (const auto& [chunk, slots] : chunks_)
      for (std::uint32_t slot = 0; slot < slots.size(); ++slot) f(chunk, slot, read(chunk, slot));
  }
  /// Gives away all of it.
  [[nodiscard]] std::shared_ptr<chunk_histories> release();

 private:
  [[nodiscard]] bool on_device(chunk_id chunk) const {
    return on_device(cut_.chunks[chunk].parameter);
  }
  [[nodiscard]] std::vector<float> read(chunk_id chunk, std::uint32_t slot) const;

  const partition& cut_;
  const std::size_t slots_;
  const std::shared_ptr<device_updates> updates_;
  chunk_histories chunks_;
};

}  // namespace poseidon
