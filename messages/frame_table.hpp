// messages/frame_table.hpp
//
// One row for each kind of frame: who says it to whom, while its reader is in which stage, how often, to whose view it belongs, and
// what a link allows for it. All who judge a frame read this table: the codec, link_receiver, frame_check, control_budget, frame_rules
// and frame_turns. A frame without a row does not compile. What is in a frame stands in frames.hpp, how its bytes lie in wire.capnp.
#pragma once
#include "messages/frames.hpp"
#include "messages/node_stage.hpp"

#include <array>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace poseidon {

/// Which node may say a frame, and which may hear it.
enum class frame_path : std::uint8_t {
  from_leader,  ///< the leader to any other node
  to_leader,    ///< any other member to the leader
  joiner,       ///< a node that is no member yet to the leader
  any_to_any,   ///< any member to any other one
  link          ///< never told to a node: the link itself reads it, or an actor that trains
};

/// How often a node may say a frame.
struct frame_turn {
  std::size_t most = 0;  ///< 0: any number
  bool of_view = false;  ///< else of the run
};

/// The view in which a frame means something.
enum class frame_view : std::uint8_t {
  any,
  readers,  ///< values and what is computed from them: in another view than its reader's it means nothing
  senders,  ///< how far its sender is in its own view, or what it asks for there: in a later one it counts for nothing
  page  ///< asked for the page of one view's leader, again each second: in another view it may be lost
};

/// What bounds the number of such frames on a link.
enum class frame_budget : std::uint8_t {
  control,  ///< control_budget counts the frame and its bytes
  probes,   ///< it counts the last one of a round, and no bytes
  free      ///< their order (peer_window), or the frame reaches no mailbox
};

struct frame_row {
  std::string_view name;  ///< as in messages, logs and traces
  frame_path path = frame_path::link;
  stage_set during = stages::never;  ///< of the node that hears it
  frame_turn turns = {};
  frame_view view = frame_view::any;
  frame_budget budget = frame_budget::control;
  bool payload = false;  ///< carries values
  bool nets = false;     ///< its header may have max_view_bytes: it carries nets, or a whole view
};

template <class F>
struct row_for {
  frame_row row;
};

namespace detail {
using namespace stages;

inline constexpr auto from_leader = frame_path::from_leader, to_leader = frame_path::to_leader,
                      joiner = frame_path::joiner, any_to_any = frame_path::any_to_any,
                      link = frame_path::link;
inline constexpr auto any_view = frame_view::any, readers = frame_view::readers,
                      senders = frame_view::senders, page = frame_view::page;
inline constexpr auto control = frame_budget::control, probes = frame_budget::probes,
                      free = frame_budget::free;
inline constexpr frame_turn any_times{}, once_in_run{1, false}, once_in_view{1, true};
// A view as a prospect, and as a member; a pause when a node holds, and when it has drained.
inline constexpr frame_turn twice_in_run{2, false}, twice_in_view{2, true};
inline constexpr bool payload = true, no_payload = false, nets = true;
inline constexpr auto ready = during(waiting);
inline constexpr auto awaiting_start = during(waiting, resuming, parting);

// clang-format off
inline constexpr std::tuple frame_table{
    // Of the link itself.
    row_for<frames::heartbeat>          {"heartbeat",          link, never, any_times, any_view, free},
    row_for<frames::goodbye>            {"goodbye",            link},

    // Of the actors that train, and of telemetry: link_routes leads there. frame_check and peer_window hold them to the run.
    row_for<frames::push_gradient>      {"push_gradient",      link, never, any_times, readers,  free, payload},
    row_for<frames::gradient_squares>   {"gradient_squares",   link, never, any_times, readers,  free, payload},
    row_for<frames::factors>            {"factors",            link, never, any_times, readers,  free, payload},
    row_for<frames::lowrank_factor>     {"lowrank_factor",     link, never, any_times, readers,  free, payload},
    row_for<frames::fresh_parameters>   {"fresh_parameters",   link, never, any_times, readers,  free, payload},
    row_for<frames::summed_gradient>    {"summed_gradient",    link, never, any_times, readers,  free, payload},
    row_for<frames::install_history>    {"install_history",    link, never, any_times, readers,  free, payload},
    row_for<frames::history>            {"history",            link, never, any_times, readers,  free, payload},
    row_for<frames::shared_state>       {"shared_state",       link, never, any_times, readers,  free, payload},
    row_for<frames::report>             {"report",             link, never, any_times, any_view, control, payload},

    // Of the node: before the view.
    row_for<frames::time_net>           {"time_net",           from_leader, forming, once_in_run,  any_view, control, no_payload, nets},
    row_for<frames::gathering>          {"gathering",          from_leader, forming},
    row_for<frames::view>               {"view",               from_leader, forming, twice_in_run, any_view, control, no_payload, nets},

    // Of the node: its leader speaks.
    row_for<frames::start_training>     {"start_training",     from_leader, awaiting_start,    once_in_view, senders},
    // The first one may come before start_training, so that no node has begun the clock that it names.
    row_for<frames::drain>              {"drain",              from_leader, running | ready,   any_times,    senders},
    row_for<frames::hold_training>      {"hold_training",      from_leader, running,           once_in_view, senders},
    row_for<frames::stop_after>         {"stop_after",         from_leader, running,           any_times,    senders},
    row_for<frames::worker_left>        {"worker_left",        from_leader, running},
    row_for<frames::watch>              {"watch",              from_leader, of_member,     any_times,    page},

    // Of the node that leads.
    row_for<frames::net_timed>          {"net_timed",          joiner,    whole_run,     once_in_run},
    row_for<frames::join_ready>         {"join_ready",         joiner,    of_member, once_in_run},
    row_for<frames::suspect>            {"suspect",            to_leader, of_member},
    row_for<frames::leave_wanted>       {"leave_wanted",       to_leader, whole_run},
    row_for<frames::member_ready>       {"member_ready",       to_leader, getting_ready, once_in_view},
    row_for<frames::worker_paused>      {"worker_paused",      to_leader, running,       twice_in_view, senders},
    row_for<frames::worker_done>        {"worker_done",        to_leader, running,       once_in_view,  senders},
    row_for<frames::worker_report>      {"worker_report",      to_leader, running,       any_times,     readers, free},
    row_for<frames::stop_requested>     {"stop_requested",     to_leader, running},
    row_for<frames::snapshot_requested> {"snapshot_requested", to_leader, running},
    row_for<frames::factor_offer>       {"factor_offer",       to_leader, running,       once_in_run},
    row_for<frames::send_rate>          {"send_rate",          to_leader, running},

    // Of any member's node.
    // The leader's checkpointer asks for a snapshot, any node's for its program, which may do so before others have begun.
    row_for<frames::gather_history>     {"gather_history",     any_to_any, running | ready,   any_times, senders},
    // The next view is decided by the members of the newest one, which may have heard of it at other times.
    row_for<frames::view_prepare>       {"view_prepare",       any_to_any, taking_part},
    row_for<frames::view_promise>       {"view_promise",       any_to_any, taking_part, any_times, any_view, control, no_payload, nets},
    row_for<frames::view_accept>        {"view_accept",        any_to_any, taking_part, any_times, any_view, control, no_payload, nets},
    row_for<frames::view_accepted>      {"view_accepted",      any_to_any, taking_part},
    row_for<frames::next_view>          {"next_view",          any_to_any, taking_part, any_times, any_view, control, no_payload, nets},
    // Links are timed by the leader before there is a view, and by every node while it trains.
    row_for<frames::probe>              {"probe",              any_to_any, whole_run,   any_times, any_view, probes, payload},
    row_for<frames::probe_heard>        {"probe_heard",        any_to_any, whole_run},
};
// clang-format on

template <class... F>
constexpr std::array<frame_row, sizeof...(F)> rows_in_order_of(const std::variant<F...>*) {
  return {std::get<row_for<F>>(frame_table).row...};
}

}  // namespace detail

template <class F>
inline constexpr const frame_row& row_of =
    std::get<row_for<std::remove_cvref_t<F>>>(detail::frame_table).row;

/// In the order of frame_header.
[[nodiscard]] inline const auto& rows_of_kinds() {
  static constexpr auto rows = detail::rows_in_order_of(static_cast<const frame_header*>(nullptr));
  return rows;
}
[[nodiscard]] inline const frame_row& row_of_kind(const frame_header& h) {
  return rows_of_kinds()[h.index()];
}

/// Whether the node handles it.
template <class F>
inline constexpr bool reaches_node = row_of<F>.path != frame_path::link;

}  // namespace poseidon
