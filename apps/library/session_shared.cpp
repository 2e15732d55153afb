// apps/library/session_shared.cpp - the part of session that is about what all workers have from worker 0.
#include "apps/library/session.hpp"

#include <utility>

namespace poseidon::library {

void session::share(std::vector<shared_memory> list) {
  require_own_process();
  const std::lock_guard lock(ends_);
  require_before_begin("poseidon_share");
  if (std::exchange(shares_, true))
    throw session_error("state is shared once, and has been already");
  program_->shared = std::move(list);
}

/// False: the time is over.
bool session::all_is_shared(seconds limit) {
  switch (program_->shared_in_flight.wait(limit)) {
    case state_in_flight::answer::over:
      return true;
    case state_in_flight::answer::not_yet:
      return false;
    case state_in_flight::answer::closed:
      break;
  }
  throw session_error(why_it_did_not_begin());
}

void session::require_giver(parameter_id parameter) const {
  const auto& declared = program_->declared[value(parameter)];
  if (declared.given && worker() != 0)
    throw session_error("\"" + declared.name + "\" is pushed by worker " +
                        std::to_string(worker()) +
                        ", but it is of the kind POSEIDON_GIVEN, whose versions worker 0 gives: "
                        "call poseidon_push_nothing");
}

}  // namespace poseidon::library
