// actors/core/actor_failure.hpp - why an actor has ended by an exception, in the exception's own words: CAF would only print them.
#pragma once
#include <caf/error.hpp>

#include <exception>
#include <stdexcept>
#include <string>

namespace caf {
class actor_system;
}

namespace poseidon {

/// Two nodes have other values, steps or bits where all have to have the same, and nobody knows which of them is right: so no node may
/// go on without the other one.
struct nodes_differ : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct actor_failure {
  std::string text;
  bool of_all = false;  // the run fails on every node, not on this one alone
};

/// What an actor by that name, whose handler threw this, ends with.
[[nodiscard]] caf::error error_of(const std::exception_ptr& thrown, const std::string& actor);

/// What error_of() has written; what CAF itself has to say as CAF says it.
[[nodiscard]] actor_failure failure_of(caf::actor_system& system, const caf::error& reason);

}  // namespace poseidon
