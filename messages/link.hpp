// messages/link.hpp - what a node's actors and its network links say to each other.
#pragma once
#include "messages/frames.hpp"

#include <caf/allowed_unsafe_message_type.hpp>

#include <optional>
#include <string>

namespace poseidon {

/// To a network_link: send this. Smaller `priority` first; equal ones in order of arrival.
/// Control frames use 0, chunks what actors/parameters/send_order.hpp says.
struct send_frame {
  frame_header header;
  payload data;
  std::uint64_t priority = 0;
  /// Of the view that it is of: where the link is bound to another one by then, it is dropped. 0: of whichever view the link is bound to.
  std::uint64_t epoch = 0;
};

/// From a network_link to the node, or the witness: a validated frame that is neither gradient nor parameters.
struct control_arrived {
  worker_id from{};  ///< in the view that the link is bound to; no_worker where it has none
  frame_header header;
  seat_id seat{};
  std::uint64_t epoch = 0;  ///< of its sender's view; 0: it had none
};

/// node -> solver, caller, server_shard, telemetry: a frame that is theirs.
struct control_passed {
  worker_id from{};
  frame_header header;
};

/// From a network_link to the shard that owns the chunk. `values`: the chunk's count, in the chunk's format.
struct gradient_arrived {
  worker_id from{};
  chunk_id chunk{};
  clock_id clock{};
  payload values;
  step_mark step{};  ///< of its program's optimizer, where shards make its steps
};

/// From a network_link to the state_keeper: the sum of all workers' gradients of a chunk whose solver state this node keeps.
struct sum_arrived {
  frames::summed_gradient of;
  payload values;
};

/// From a network_link to the shard: what another shard's summed gradients add to the gradient norm of a clock.
struct squares_arrived {
  worker_id from{};
  clock_id clock{};
  payload values;
};

/// From a network_link to the layer's factor_broadcast: the values of a frame have been read to their place
/// in the layer's factor_store.
struct factors_landed {
  worker_id from{};
  clock_id clock{};
  std::uint32_t rows = 0;
  std::uint64_t first = 0;
  step_mark step{};  ///< as gradient_arrived's
};

/// From a network_link to the layer's lowrank_exchange, or from there to itself: a worker's part of P or Q, or the owner's sum.
struct lowrank_landed {
  worker_id from{};
  clock_id clock{};
  bool second = false;  ///< Q
  payload values;
};

/// From a network_link, or from the node where it had them itself: fresh values lie at their place in this node's parameter store.
struct chunk_landed {
  chunk_id chunk{};
  version_id version{};
  bool nothing = false;  ///< no worker had a gradient of it: its place has no values
};

/// From a network_link, or from the node where it had it itself, to who owns the chunk's solver state from now on, or keeps a copy.
struct history_inherited {
  chunk_id chunk{};
  std::uint32_t slot = 0;
  std::uint64_t first = 0;  ///< place of the first value in the chunk
  payload values;
};

/// To the checkpointer, from a network_link or from an owner on this node: a copy for a snapshot.
struct history_arrived {
  worker_id from{};
  chunk_id chunk{};
  std::uint32_t slot = 0;
  version_id version{};
  payload values;
};

/// From a network_link to the caller: so many bytes of what programs share have been read to their place in the program's memory.
struct shared_landed {
  std::uint64_t bytes = 0;
};

/// From a network_link to telemetry: a node_report, not yet decoded.
struct report_arrived {
  seat_id from{};
  payload packed;
};

/// From a network_link: the peer is gone. Said once, also for a bad frame; the link sends nothing after it.
struct link_lost {
  seat_id peer{};
  std::string why;          ///< one line naming peer, address and cause
  bool on_purpose = false;  ///< a goodbye came before
  /// Why the link ended before the run did: what a goodbye says, or this side's reason. Empty: as planned, or no goodbye.
  std::optional<std::string> reason = std::nullopt;
  frames::goodbye::cause of = frames::goodbye::cause::run;  ///< of a peer's goodbye
  /// The peer was heard until the connection ended, and this process has not been stopped meanwhile: what the peer's machine
  /// says at once tells what has just happened, not what happened long ago.
  bool fresh = false;
  /// The peer ended the connection, and this process had not read it for a while: it may have been stopped, and the peer may have gone on
  /// without it meanwhile.
  bool slept = false;
  bool said_goodbye = false;  ///< the peer did, before this side
};

/// From a network_link, after bind_link: frames that arrive from now on are checked against that binding.
struct link_bound {
  seat_id peer{};
  std::uint64_t epoch = 0;  ///< of the view that it is bound to
};

/// From a network_link, a few times a second: what its socket has sent so far (messages/wire/tcp_flow.hpp).
struct link_flow {
  seat_id peer{};
  std::uint64_t acked_bytes = 0, busy_us = 0, hindered_us = 0;
  std::uint64_t waited_us = 0;  ///< for which the link's thread had no core
};

/// To a network_link: send what waits, say goodbye, close.
struct close_link {
  std::string reason;
  frames::goodbye::cause of = frames::goodbye::cause::run;
};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::send_frame)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::control_arrived)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::control_passed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::gradient_arrived)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::sum_arrived)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::squares_arrived)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::chunk_landed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::factors_landed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::lowrank_landed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::history_inherited)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::history_arrived)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::shared_landed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::link_bound)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::report_arrived)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::link_flow)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::link_lost)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::close_link)
