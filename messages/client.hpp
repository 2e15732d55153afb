// messages/client.hpp - what a program that computes gradients itself says to the caller, the actor that stands for it, and what
// the callers' programs can do, for the choice of routes.
#pragma once
#include "messages/ids.hpp"

#include <caf/allowed_unsafe_message_type.hpp>

#include <cstdint>
#include <vector>

namespace poseidon {

/// The program has lent its gradients of these parameters (actors/client/lent_gradient.hpp), or filled in their factors, or says that
/// it has none.
struct gradients_lent {
  struct gradient {
    parameter_id parameter{};
    clock_id clock{};
  };
  std::vector<gradient> gradients;  ///< in the order in which they were pushed
};

/// The program wants the optimizer's state, which lies on the shards. All its parameters are at `version`, and it has pushed nothing
/// since, so no shard can be ahead.
struct state_wanted {
  version_id version{};
};

/// The program has given what newcomers need (actors/client/newcomer_state.hpp), of the clock before which it pauses.
struct state_given {
  clock_id clock{};
};

/// What a clock has come to on this node.
struct clock_reported {
  clock_id clock{};
  double loss = 0;
  std::uint64_t samples = 0;
};

/// What a parameter costs this node's program, as it has measured.
struct parameter_load {
  double backward_s = 0;  ///< seconds of the backward pass for it
  /// Of these, the seconds of the product that makes its gradient from factors.
  double product_s = 0;
  /// Of its factors in a clock. 0: the program gives the gradient as a whole.
  std::uint32_t factor_rows = 0;
};

/// By parameter; once.
struct loads_measured {
  std::vector<parameter_load> loads;
};

/// caller of worker 0 -> node, once all programs have measured.
struct factors_offered {
  /// By parameter: most rows on one worker; 0: not all workers can give factors.
  std::vector<std::uint32_t> rows;
  std::vector<parameter_load> loads;  ///< by parameter, of worker 0
  std::vector<parameter_id> order;    ///< in which the forward pass needs them
};

/// The program trains no further: this node's parameters stay at `version`.
struct program_done {
  std::uint64_t version = 0;
  bool others_go_on = false;  ///< as in frames::worker_left
};

/// caller -> node: the program trains a clock that this member, which leaves, does not train.
struct goes_on_without {
  seat_id left{};
};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::gradients_lent)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::state_wanted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::state_given)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::clock_reported)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::loads_measured)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::factors_offered)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::program_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::goes_on_without)
