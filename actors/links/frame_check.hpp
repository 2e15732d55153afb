// actors/links/frame_check.hpp - holds the header of a received frame to the run, before its payload is read.
#pragma once
#include "messages/wire/codec.hpp"
#include "models/device/factors.hpp"
#include "models/device/wire_format.hpp"
#include "models/indexed.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace poseidon {

/// What a peer's worker_report of one net holds.
struct report_shape {
  std::uint32_t sums = 0;  ///< training: the smoothed loss and each output; test nets: each output
  std::uint32_t passes = 0;  ///< that the sums are over
};

/// What a frame of this run can say. Empty before the view is known: frames with values are bad
/// then.
struct link_limits {
  by_id<chunk_id, std::uint32_t> chunk_values;
  by_id<chunk_id, wire_format> chunk_formats;  ///< empty: float32 throughout
  std::uint64_t first_version = 0;  ///< the first clock, whose parameters travel as float32
  std::uint64_t end_clock = 0;      ///< the run trains the clocks before this one
  std::uint32_t history_slots = 4;  ///< arrays of solver state per chunk, at most
  bool clips = false;               ///< the run has clip_gradients
  /// Programs compute the gradients: a clock may have none of a parameter.
  bool may_say_nothing = false;
  /// They make the steps, too: each clock's gradients, and their means, name their format.
  bool names_formats = false;
  bool watches = false;               ///< this node shows the run: it reads `report` frames
  std::vector<std::uint64_t> shared;  ///< bytes, by index; empty: this node takes no shared_state
  by_id<layer_id, factor_shape> factors;  ///< of one node; rows 0 where it sends none
  /// Bytes of a frame of P, with what goes beside it, and of Q; 0 where the layer is on no lowrank route.
  struct lowrank_sizes {
    std::size_t first = 0, second = 0;
  };
  by_id<layer_id, lowrank_sizes> lowrank;
  /// The train net's, then each test net's. Empty: this node reads no worker_report.
  std::vector<report_shape> reports;
};

/// The format in which the values of `f` travel.
[[nodiscard]] wire_format format_of(const frames::fresh_parameters& f, const link_limits& limits);

/// Whether a frame belongs to one view, as values and what is computed from them do: in another view it means nothing.
[[nodiscard]] bool is_of_a_view(const frame_header& h);

/// Whether it says how far its sender is in its own view, or asks for something there: in a later one it counts for nothing.
[[nodiscard]] bool is_of_its_senders_view(const frame_header& h);

/// Whether the leader of one view asks so for its page. It asks again each second, so that in another view the frame may be lost.
[[nodiscard]] bool is_for_the_page(const frame_header& h);

/// Holds the header of a frame from node `peer` to the run. While that seat is not known, no_seat, the frame may name any.
/// Errors   bad_frame.
void check_frame(const decoded_header& h, seat_id peer, const link_limits& limits);

}  // namespace poseidon
