// messages/node.hpp - what a node hears from the program that runs it.
#pragma once
#include <caf/allowed_unsafe_message_type.hpp>

namespace poseidon {

/// app -> node, witness: begin.
struct start_node {};

/// signal thread -> node, witness: SIGINT, SIGTERM or SIGHUP.
struct interrupted {
  int signal = 0;
  bool snapshot = false;  ///< write one, and go on; else end
  bool leaves = false;    ///< this node leaves, and the others go on; else all end
};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::start_node)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::interrupted)
