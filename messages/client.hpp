// messages/client.hpp - what a program that computes gradients itself says to the caller, the actor that stands for it.
#pragma once
#include "messages/ids.hpp"

#include <caf/allowed_unsafe_message_type.hpp>

#include <cstdint>

namespace poseidon {

/// The program has lent its gradient of this parameter (actors/client/lent_gradient.hpp), or says that it has none.
struct gradient_lent {
  parameter_id parameter{};
  clock_id clock{};
};

/// What a clock has come to on this node.
struct clock_reported {
  clock_id clock{};
  double loss = 0;
  std::uint64_t samples = 0;
};

/// The program trains no further: this node's parameters stay at `version`.
struct program_done {
  std::uint64_t version = 0;
};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::gradient_lent)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::clock_reported)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::program_done)
