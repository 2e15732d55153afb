// actors/parameters/gradient_source.hpp - where a gradient_push finds what it sends.
#pragma once
#include "models/optimizer_rule.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace poseidon {

class gradient_source {
 public:
  virtual ~gradient_source() = default;
  /// This node's gradient of the i-th parameter of a group, not averaged, once it is complete. Empty: it stays on a device, or
  /// there is none in this clock.
  [[nodiscard]] virtual std::span<const float> total(std::uint64_t clock, std::size_t i) const = 0;
  /// How the program's optimizer steps with the newest of them; empty: its own business, or there is no program.
  [[nodiscard]] virtual std::optional<optimizer_step> step() const { return std::nullopt; }
  /// The format in which a program's gradient travels, and the mean of all workers' comes back; float32 in other runs, whatever the view says.
  [[nodiscard]] virtual wire_format wire() const { return wire_format::float32; }
  /// Where the program wants the mean of the newest of them, if it is made of factors; empty: where its version lies.
  [[nodiscard]] virtual std::span<float> mean() const { return {}; }
  /// The values that the program's optimizer steps from; empty: those of the version before.
  [[nodiscard]] virtual std::span<const float> base() const { return {}; }
};

/// What all workers' gradients of one clock have to have in common.
[[nodiscard]] inline step_mark mark_of(const gradient_source& source) {
  auto mark = mark_of(source.step());
  mark.wire = source.wire();
  return mark;
}

}  // namespace poseidon
