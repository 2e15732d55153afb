// actors/cluster/frame_rules.hpp
//
// Which frame a node may hear from which other node, and in which phase of its run. One table over all frames: a frame
// without a row does not compile. The node asks it before it handles a frame. Frames that the link itself consumes, or
// hands to the actors that train, are the link's matter (links, peer_window); a row says so, and none may reach the node.
#pragma once
#include "messages/frames.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

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
[[nodiscard]] std::string_view to_string(run_phase p);

/// Which node may say a frame, and which may hear it.
enum class frame_path : std::uint8_t {
  from_leader,  ///< the leader to any other node
  to_leader,    ///< any other member to the leader
  joiner,       ///< a node that is no member yet to the leader
  any_to_any,   ///< any member to any other one
  link          ///< never told to a node
};

struct frame_rule {
  frame_path path = frame_path::link;
  std::uint16_t phases = 0;  ///< of the node that hears it: a bit each
};

namespace detail {
template <class... P>
constexpr std::uint16_t during(P... p) {
  return static_cast<std::uint16_t>(((1u << static_cast<unsigned>(p)) | ...));
}
inline constexpr auto forming = during(run_phase::gathering);
/// From start_training on. A node that is ahead may speak to one that still changes.
inline constexpr auto running =
    during(run_phase::training, run_phase::changing, run_phase::rebuilding, run_phase::resuming);
inline constexpr auto getting_ready =
    during(run_phase::building, run_phase::waiting, run_phase::changing, run_phase::rebuilding,
           run_phase::resuming);
inline constexpr auto taking_part =
    static_cast<std::uint16_t>(getting_ready | running | during(run_phase::parting));
inline constexpr auto whole_run = static_cast<std::uint16_t>(forming | getting_ready | running);
}  // namespace detail

// clang-format off
constexpr frame_rule rule_for(const frames::heartbeat*)        { return {frame_path::link}; }
constexpr frame_rule rule_for(const frames::goodbye*)          { return {frame_path::link}; }
constexpr frame_rule rule_for(const frames::push_gradient*)    { return {frame_path::link}; }
constexpr frame_rule rule_for(const frames::gradient_squares*) { return {frame_path::link}; }
constexpr frame_rule rule_for(const frames::factors*)          { return {frame_path::link}; }
constexpr frame_rule rule_for(const frames::fresh_parameters*) { return {frame_path::link}; }
constexpr frame_rule rule_for(const frames::summed_gradient*)  { return {frame_path::link}; }
constexpr frame_rule rule_for(const frames::install_history*)  { return {frame_path::link}; }
constexpr frame_rule rule_for(const frames::history*)          { return {frame_path::link}; }
constexpr frame_rule rule_for(const frames::shared_state*)     { return {frame_path::link}; }
constexpr frame_rule rule_for(const frames::report*)           { return {frame_path::link}; }

constexpr frame_rule rule_for(const frames::time_net*)       { return {frame_path::from_leader, detail::forming}; }
constexpr frame_rule rule_for(const frames::gathering*)      { return {frame_path::from_leader, detail::forming}; }
constexpr frame_rule rule_for(const frames::view*)           { return {frame_path::from_leader, detail::forming}; }
constexpr frame_rule rule_for(const frames::start_training*) { return {frame_path::from_leader, detail::during(run_phase::waiting, run_phase::resuming, run_phase::parting)}; }
/// The first one may come before start_training, so that no node has begun the clock that it names.
constexpr frame_rule rule_for(const frames::drain*)          { return {frame_path::from_leader, static_cast<std::uint16_t>(detail::running | detail::during(run_phase::waiting))}; }
constexpr frame_rule rule_for(const frames::hold_training*)  { return {frame_path::from_leader, detail::running}; }
constexpr frame_rule rule_for(const frames::stop_after*)     { return {frame_path::from_leader, detail::running}; }
constexpr frame_rule rule_for(const frames::worker_left*)    { return {frame_path::from_leader, detail::running}; }
constexpr frame_rule rule_for(const frames::watch*)          { return {frame_path::from_leader, static_cast<std::uint16_t>(detail::getting_ready | detail::running)}; }

constexpr frame_rule rule_for(const frames::net_timed*)      { return {frame_path::joiner, static_cast<std::uint16_t>(detail::forming | detail::getting_ready | detail::running)}; }
constexpr frame_rule rule_for(const frames::join_ready*)     { return {frame_path::joiner, static_cast<std::uint16_t>(detail::getting_ready | detail::running)}; }
constexpr frame_rule rule_for(const frames::suspect*)        { return {frame_path::to_leader, detail::getting_ready | detail::running}; }
constexpr frame_rule rule_for(const frames::leave_wanted*)   { return {frame_path::to_leader, detail::whole_run}; }
constexpr frame_rule rule_for(const frames::member_ready*)   { return {frame_path::to_leader, detail::getting_ready}; }
constexpr frame_rule rule_for(const frames::worker_paused*)  { return {frame_path::to_leader, detail::running}; }
constexpr frame_rule rule_for(const frames::worker_done*)    { return {frame_path::to_leader, detail::running}; }
constexpr frame_rule rule_for(const frames::worker_report*)  { return {frame_path::to_leader, detail::running}; }
constexpr frame_rule rule_for(const frames::stop_requested*) { return {frame_path::to_leader, detail::running}; }
constexpr frame_rule rule_for(const frames::snapshot_requested*) { return {frame_path::to_leader, detail::running}; }
constexpr frame_rule rule_for(const frames::factor_offer*)   { return {frame_path::to_leader, detail::running}; }
constexpr frame_rule rule_for(const frames::send_rate*)      { return {frame_path::to_leader, detail::running}; }

/// The leader's checkpointer asks for a snapshot, any node's for its program, which may do so before others have begun.
constexpr frame_rule rule_for(const frames::gather_history*) { return {frame_path::any_to_any, static_cast<std::uint16_t>(detail::running | detail::during(run_phase::waiting))}; }
/// The next view is decided by the members of the newest one, which may have heard of it at other times.
constexpr frame_rule rule_for(const frames::view_prepare*)  { return {frame_path::any_to_any, detail::taking_part}; }
constexpr frame_rule rule_for(const frames::view_promise*)  { return {frame_path::any_to_any, detail::taking_part}; }
constexpr frame_rule rule_for(const frames::view_accept*)   { return {frame_path::any_to_any, detail::taking_part}; }
constexpr frame_rule rule_for(const frames::view_accepted*) { return {frame_path::any_to_any, detail::taking_part}; }
constexpr frame_rule rule_for(const frames::next_view*)     { return {frame_path::any_to_any, detail::taking_part}; }
/// Links are timed by the leader before there is a view, and by every node while it trains.
constexpr frame_rule rule_for(const frames::probe*)       { return {frame_path::any_to_any, detail::whole_run}; }
constexpr frame_rule rule_for(const frames::probe_heard*) { return {frame_path::any_to_any, detail::whole_run}; }
// clang-format on

template <class F>
inline constexpr bool reaches_node =
    rule_for(static_cast<const std::remove_cvref_t<F>*>(nullptr)).path != frame_path::link;

[[nodiscard]] frame_rule rule_for(const frame_header& h);

/// Training has begun and has not ended; a change of the view is part of it.
[[nodiscard]] constexpr bool is_running(run_phase p) {
  return (detail::running >> static_cast<unsigned>(p) & 1u) != 0;
}

/// The view in which a node has written a frame, compared with the newest one that its reader knows.
enum class written_in : std::uint8_t { same_view, earlier_view, later_view };

/// The node that hears a frame.
struct frame_listener {
  seat_id self{};
  seat_id leader{};
  run_phase phase = run_phase::starting;
  bool has_led = false;  ///< an earlier view
};
struct frame_sender {
  seat_id seat{};
  /// Of the listener's view; while nodes gather all are.
  bool is_member = true;
  written_in wrote = written_in::same_view;
  bool has_led = false;  ///< an earlier view that the listener was in
};

/// Why `from` may not say this to that node now, with what it did and what it may; empty: it may.
[[nodiscard]] std::optional<std::string> refusal_of(const frame_header& h, const frame_sender& from,
                                                    const frame_listener& to);

/// Whether a frame that `to` may not hear was right in the view in which its sender wrote it: one of the two has not heard yet of a
/// change of the view that the other one knows. It counts for nothing, and is no fault.
[[nodiscard]] bool is_of_another_view(const frame_header& h, const frame_sender& from,
                                      const frame_listener& to);

}  // namespace poseidon
