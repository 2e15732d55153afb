// actors/parameters/chunk_update.hpp - what is the same about an update of a chunk on its owner and on its keepers: server_shard
// and state_keeper make it from the same sum of gradients.
#pragma once
#include "actors/core/trace.hpp"
#include "actors/parameters/gradient_source.hpp"
#include "actors/parameters/parameter_store.hpp"
#include "messages/link.hpp"
#include "models/device/value_checksum.hpp"
#include "models/solver/solver_rule.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace poseidon {

/// From the owner of a chunk to its keepers, when it has made version `step.iteration` + 1 of it: `made`, of its values.
[[nodiscard]] send_frame frame_to_keepers(chunk_id id, const rule_step& step,
                                          const value_checksum& made, const payload& sum,
                                          std::uint64_t priority);

/// The numbers that it was made with, on a keeper.
[[nodiscard]] rule_step step_of(const frames::summed_gradient& sum);

/// Where a chunk has a reduced format, the values that nodes have follow the exact ones, on its owner and keepers, in rounded steps: writes
/// version `before` + 1 of the chunk to the store, and the step that leads there from `values`, which the nodes have, to `step`, as it travels.
void land_rounded(parameter_store& store, chunk_id id, std::uint64_t before,
                  std::span<const float> values, std::span<const float> exact,
                  std::span<std::byte> step);

/// A program may have written to its values since the version before, which lies at `before`: what it wrote is exact.
void take_over(std::span<const float> values, std::span<const float> before,
               std::span<float> exact);

/// Where an update of a chunk by a program's optimizer begins: at the values that the program says, or at the store's version `before`.
[[nodiscard]] std::span<const float> base_of(parameter_store& store, chunk_id id,
                                             std::uint64_t before, const gradient_source& lent);

/// Records the update that made `version`, from `begin_ns` to now. `lane`: null without tracing.
void record_update(trace_lane* lane, std::string_view layer, std::int64_t begin_ns,
                   std::uint64_t version, chunk_id id, std::size_t values);

/// Errors   logic_bug: solver state as of version `wanted` is to be released, and the chunk is at an older one.
void require_reached(chunk_id id, std::optional<version_id> wanted, std::uint64_t version);

}  // namespace poseidon
