// models/plan/lossy_choice.hpp
//
// The ladder of --lossy: how roughly gradients have to be rounded so that training no longer waits for the wire. Each rung rounds more
// than the one before; the user says up to which one Poseidon may go. The rung that is taken is the mildest one whose predicted
// iteration takes at most 5 % more than the fastest of them; then each layer whose transfer hides behind the pass gets a milder
// format still, where that costs at most 1 %. On a fast wire that is float32, and nothing changes.
#pragma once
#include "models/plan/route_choice.hpp"
#include "models/plan/wire_choice.hpp"

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace poseidon {

/// The formats of the ladder, mildest first. float16 is none: bfloat16 has its bytes and float32's range.
[[nodiscard]] std::span<const wire_format> ladder_formats();

/// The value of --lossy: the harshest format that Poseidon may choose. "none" is float32, with which nothing is rounded.
/// Errors   spec_error that lists the rungs.
[[nodiscard]] wire_format parse_lossy(const std::string& option);

/// The loads of a net whose gradients have these formats.
using loads_by_format = std::function<std::vector<route_load>(const parameter_formats&)>;
/// The routes by layer for these loads.
using choose_by_loads = std::function<layer_routes(const std::vector<route_load>& loads)>;

/// The whole net in one format.
struct ladder_rung {
  wire_format format = wire_format::float32;
  double bytes = 0;         ///< sent by a node in an iteration
  double iteration_ms = 0;  ///< predicted
};

struct lossy_choice {
  std::vector<ladder_rung> rungs;  ///< mildest first; the first one is float32
  std::size_t rung = 0;            ///< that was taken
  /// Of that rung, with the milder ones of layers that hide; empty: float32 throughout.
  parameter_formats formats;
  double bytes = 0;  ///< with these formats
  double iteration_ms = 0;
};

[[nodiscard]] lossy_choice choose_lossy(const net& n, const loads_by_format& loads_in,
                                        const route_rates& rates, wire_format harshest,
                                        const choose_by_loads& routes);

/// One line for the user: what is rounded, what that saves by prediction, and what no longer holds.
[[nodiscard]] std::string lossy_note(const lossy_choice& choice, wire_format harshest);

/// A table for people, and for programs {"rungs":[...],"chosen":...}.
[[nodiscard]] std::string ladder_table(const lossy_choice& choice, const route_rates& rates);
[[nodiscard]] json_object ladder_json(const lossy_choice& choice);

}  // namespace poseidon
