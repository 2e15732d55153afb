// messages/membership.hpp - who takes part: what node and coordinator say to each other on the leader.
#pragma once
#include "messages/frames.hpp"
#include "messages/ids.hpp"

#include <caf/allowed_unsafe_message_type.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace poseidon {

/// node -> coordinator: while nodes gather, one has proved the token and has got this seat.
struct member_joined {
  frames::member joiner;
};

/// coordinator -> node: all nodes have joined; by worker id.
struct view_agreed {
  std::vector<frames::member> members;
};

/// node -> coordinator: this member's links and actors exist.
struct member_is_ready {
  seat_id seat{};
  std::uint64_t epoch = 0;  ///< of the view that it is ready for
};
/// coordinator -> node: all members are ready. `epoch`, here and below: of the view that holds, or begins. Where a member is lost, the
/// next coordinator follows while words of the one before may still wait in the node's mailbox; they count for nothing.
struct everyone_ready {
  std::uint64_t epoch = 0;
};
/// node -> coordinator: the leader has told all members to train.
struct everyone_began {};

/// node -> coordinator: all members are to train with these routes, as soon as possible; or, if a clock is given, from
/// that clock on. Then it comes before everyone_began, and the node tells the members to drain.
struct change_wanted {
  std::vector<std::uint8_t> routes;  ///< as frames::view has them
  std::optional<clock_id> clock;
  std::string why;  ///< for people
  /// So many members from then on; 0: as nodes join and leave.
  std::size_t members = 0;
};
/// node -> coordinator: the run is to end, so nobody waits any longer for nodes that a schedule wants.
struct schedule_ends {};
/// node -> coordinator: a node has built what it can build, and is to be in the next view.
struct newcomer_ready {
  frames::member newcomer;
};
/// node -> coordinator: a node is gone that is no member, or one of a view that has not begun.
struct newcomer_gone {
  seat_id seat{};
};
/// node -> coordinator: the next view is to be without this member.
struct member_leaves {
  seat_id seat{};
};

/// coordinator -> node: ask every member which clock it would begin next.
struct hold_everyone {
  std::uint64_t epoch = 0;
};

/// node -> coordinator: what a member answers (frames::worker_paused).
struct member_paused {
  seat_id seat{};
  clock_id clock{};
  bool drained = false;
};
/// coordinator -> node: tell every member to train up to this clock.
struct drain_agreed {
  clock_id clock{};
  std::uint64_t epoch = 0;
};
/// coordinator -> node: all members have drained; tell them, those who leave and those who join. Said again, with the next epoch,
/// where a newcomer has died before that view could begin.
struct everyone_drained {
  std::uint64_t epoch = 0;                          ///< of the next view
  std::vector<frames::member> members;              ///< of the next view, by worker
  std::optional<std::vector<std::uint8_t>> routes;  ///< empty: as they are
  std::string why;                                  ///< of the routes, for people
};
/// coordinator -> node: all members want to leave, which is the end of the run.
struct everyone_leaves {
  std::uint64_t epoch = 0;
};

/// coordinator -> node: all other members stand at this clock, and wait for this node: before a change of the view, or at the end.
struct others_wait {
  clock_id clock{};
  std::uint64_t epoch = 0;
};

/// node -> coordinator: this member has trained its last clock.
struct member_is_done {
  seat_id seat{};
  version_id version{};
};
struct everyone_done {
  std::uint64_t epoch = 0;
};

/// app -> node: begin.
struct start_node {};

/// signal thread -> node: SIGINT, SIGTERM or SIGHUP.
struct interrupted {
  int signal = 0;
  bool snapshot = false;  ///< write one, and go on; else end
  bool leaves = false;    ///< this node leaves, and the others go on; else all end
};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::member_joined)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::view_agreed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::member_is_ready)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::everyone_ready)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::everyone_began)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::change_wanted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::schedule_ends)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::newcomer_ready)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::newcomer_gone)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::member_leaves)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::hold_everyone)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::member_paused)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::drain_agreed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::everyone_drained)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::everyone_leaves)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::member_is_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::everyone_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::others_wait)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::start_node)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::interrupted)
