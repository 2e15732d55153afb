// messages/membership.hpp - who takes part: what node and coordinator say to each other on worker 0.
#pragma once
#include "messages/ids.hpp"

#include <caf/allowed_unsafe_message_type.hpp>

#include <optional>
#include <string>
#include <vector>

namespace poseidon {

/// node -> coordinator: a node has proved the token and listens at `address`.
struct member_joined {
  std::string address;
};

/// coordinator -> node: all nodes have joined; their addresses by worker id.
struct view_agreed {
  std::vector<std::string> members;
};

/// node -> coordinator: this worker's links and actors exist.
struct member_is_ready {
  worker_id worker{};
};
struct everyone_ready {};

/// node -> coordinator: all workers are to train with these routes, as soon as possible; or, if a clock is given, from
/// that clock on, which all have been told.
struct change_wanted {
  std::vector<std::uint8_t> routes;  ///< as frames::view has them
  std::optional<clock_id> clock;
  std::string why;  ///< for people
};
/// coordinator -> node: ask every worker which clock it would begin next.
struct hold_everyone {};

/// node -> coordinator: what a worker answers (frames::worker_paused).
struct member_paused {
  worker_id worker{};
  clock_id clock{};
  bool drained = false;
};
/// coordinator -> node: tell every worker.
struct change_agreed {
  clock_id clock{};
  std::vector<std::uint8_t> routes;
  std::string why;
};
struct everyone_drained {};

/// node -> coordinator: this worker has trained its last clock.
struct member_is_done {
  worker_id worker{};
};
struct everyone_done {};

/// app -> node: begin.
struct start_node {};

/// signal thread -> node: SIGINT, SIGTERM or SIGHUP.
struct interrupted {
  int signal = 0;
  bool snapshot = false;  ///< write one, and go on; else end
};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::member_joined)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::view_agreed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::member_is_ready)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::everyone_ready)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::change_wanted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::hold_everyone)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::member_paused)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::change_agreed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::everyone_drained)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::member_is_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::everyone_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::start_node)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::interrupted)
