#include "actors/parameters/chunk_update.hpp"

#include "actors/core/logic_bug.hpp"
#include "models/device/wire_format.hpp"

#include <bit>
#include <string>

namespace poseidon {

send_frame frame_to_keepers(chunk_id id, const rule_step& step, const value_checksum& made,
                            const payload& sum, std::uint64_t priority) {
  return {frames::summed_gradient{id, clock_id{step.iteration}, step.rate, step.decay, step.scale,
                                  made.value()},
          sum, priority};
}

rule_step step_of(const frames::summed_gradient& sum) {
  return {value(sum.clock), sum.rate, sum.decay, sum.scale};
}

void land_rounded(parameter_store& store, chunk_id id, std::uint64_t before,
                  std::span<const float> values, std::span<const float> exact,
                  std::span<std::byte> step) {
  const auto format = store.cut().chunks[id].format;
  encode_change(format, exact, values, step);
  add_decoded(format, step, values, store.at(id, before + 1));
}

void take_over(std::span<const float> values, std::span<const float> before,
               std::span<float> exact) {
  if (values.data() == before.data()) return;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (std::bit_cast<std::uint32_t>(values[i]) != std::bit_cast<std::uint32_t>(before[i]))
      exact[i] = values[i];
}

std::span<const float> base_of(parameter_store& store, chunk_id id, std::uint64_t before,
                               const gradient_source& lent) {
  const auto& c = store.cut().chunks[id];
  const auto base = lent.base();
  return base.empty() ? std::span<const float>(store.at(id, before))
                      : base.subspan(c.offset, c.count);
}

void record_update(trace_lane* lane, std::string_view layer, std::int64_t begin_ns,
                   std::uint64_t version, chunk_id id, std::size_t values) {
  if (lane == nullptr) return;
  lane->record({layer, span_phase::apply, begin_ns, now_ns(), version - 1,
                static_cast<std::int64_t>(value(id)), values * sizeof(float)});
}

void require_reached(chunk_id id, std::optional<version_id> wanted, std::uint64_t version) {
  if (wanted && value(*wanted) > version)
    throw logic_bug(
        "solver state of a version that chunk " + std::to_string(value(id)) + " has not reached",
        value(*wanted), version);
}

}  // namespace poseidon
