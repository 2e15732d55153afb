// models/plan/lossy_choice.hpp
//
// The ladder of --lossy: how roughly gradients have to be rounded so that training no longer waits for the wire. Each rung rounds more
// than the one before; the last one sends matrices as P and Q of low rank, and the rest as the rung before. The user says up to which one
// Poseidon may go. The rung that is taken is the mildest one whose predicted iteration takes at most 2 % more than the fastest of
// them; then each layer whose transfer hides behind the pass gets a milder one still, where that costs at most 1 %. On a fast
// wire that is float32, and nothing changes.
#pragma once
#include "models/plan/route_choice.hpp"
#include "models/plan/wire_choice.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace poseidon {

/// How roughly the gradients of a net, or of a layer, may travel.
struct lossiness {
  wire_format format = wire_format::float32;
  bool lowrank = false;  ///< matrices may go as P and Q

  bool operator==(const lossiness&) const = default;
  [[nodiscard]] bool is_none() const { return *this == lossiness{}; }
};

/// Of the rung lowrank, where the user names no rank: the higher one, which loses less.
inline constexpr std::uint32_t rank_of_ladder = 8;

/// The rungs of the ladder, mildest first. float16 is none: bfloat16 has its bytes and float32's range.
[[nodiscard]] std::span<const lossiness> all_rungs();

/// The value of --lossy: the harshest rung that Poseidon may choose. "none" is float32, with which nothing is rounded.
/// Errors   spec_error that lists the rungs.
[[nodiscard]] lossiness parse_lossy(const std::string& option);

/// The loads of a net whose gradients have these formats, with low rank where that is allowed.
using loads_by_rung =
    std::function<std::vector<route_load>(const parameter_formats& formats, bool lowrank)>;
/// The routes by layer for these loads.
using choose_by_loads = std::function<layer_routes(const std::vector<route_load>& loads)>;

/// The whole net on one rung.
struct ladder_rung {
  lossiness is;
  double bytes = 0;         ///< sent by a node in an iteration
  double iteration_ms = 0;  ///< predicted
};

struct lossy_choice {
  std::vector<ladder_rung> rungs;  ///< mildest first; the first one is float32
  std::size_t rung = 0;            ///< that was taken
  /// Of that rung, with the milder ones of layers that hide; empty: float32 throughout.
  parameter_formats formats;
  bool by_lowrank = false;        ///< some layers go by low rank
  std::vector<route_load> loads;  ///< by layer, of the rung that the layer is on
  double bytes = 0;               ///< with these formats
  double iteration_ms = 0;
};

[[nodiscard]] lossy_choice choose_lossy(const net& n, const loads_by_rung& loads_of,
                                        const route_rates& rates, const lossiness& harshest,
                                        const choose_by_loads& routes);

/// One line for the user: what is rounded, what that saves by prediction, and what no longer holds.
[[nodiscard]] std::string lossy_note(const lossy_choice& choice, const lossiness& harshest);

/// A table for people, and for programs {"rungs":[...],"chosen":...}.
[[nodiscard]] std::string ladder_table(const lossy_choice& choice, const route_rates& rates);
[[nodiscard]] json_object ladder_json(const lossy_choice& choice);

}  // namespace poseidon
