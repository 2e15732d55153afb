// messages/run_phase.hpp - what a node is doing, and the sets of phases in which it may hear a frame (frame_table.hpp).
#pragma once
#include <cstdint>

namespace poseidon {

/// What a node is doing.
enum class run_phase : std::uint8_t {
  starting,    ///< it has no member yet
  gathering,   ///< nodes join, until there is a view
  building,    ///< nets are compiled, links are bound
  waiting,     ///< this node is ready, others are not
  training,    ///< also while a change of the view drains it
  changing,    ///< the graph of the old view ends
  rebuilding,  ///< as building, for the next view
  resuming,    ///< as waiting, for the next view
  parting,  ///< the next view is without this node, which waits until it can give its solver state away
  failing,  ///< what this node has is written, then it ends
  ended
};

/// A bit for each phase.
enum class phase_set : std::uint16_t {};
[[nodiscard]] constexpr phase_set operator|(phase_set a, phase_set b) {
  return static_cast<phase_set>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
template <class... P>
[[nodiscard]] constexpr phase_set during(P... p) {
  return static_cast<phase_set>(((1u << static_cast<unsigned>(p)) | ... | 0u));
}
[[nodiscard]] constexpr bool contains(phase_set set, run_phase p) {
  return (static_cast<unsigned>(set) >> static_cast<unsigned>(p) & 1u) != 0;
}

namespace phases {
inline constexpr auto never = during();
inline constexpr auto forming = during(run_phase::gathering);
/// From start_training on. A node that is ahead may speak to one that still changes.
inline constexpr auto running =
    during(run_phase::training, run_phase::changing, run_phase::rebuilding, run_phase::resuming);
inline constexpr auto getting_ready =
    during(run_phase::building, run_phase::waiting, run_phase::changing, run_phase::rebuilding,
           run_phase::resuming);
inline constexpr auto member_phases = getting_ready | running;
inline constexpr auto taking_part = member_phases | during(run_phase::parting);
inline constexpr auto whole_run = forming | member_phases;
}  // namespace phases

/// Training has begun and has not ended; a change of the view is part of it.
[[nodiscard]] constexpr bool is_running(run_phase p) {
  return contains(phases::running, p);
}

}  // namespace poseidon
