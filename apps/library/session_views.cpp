// apps/library/session_views.cpp - the part of session that is about who else trains.
#include "apps/library/session.hpp"

#include <algorithm>

namespace poseidon::library {

/// Others may have gone since the program looked last.
void session::see_view() {
  const auto view = program_->views.newest();
  worker_ = view.self == no_worker ? 0 : value(view.self);
  workers_ = static_cast<std::uint32_t>(std::max<std::size_t>(1, view.seats.size()));
}

std::optional<program_view> session::view(std::size_t index) const {
  if (program_ == nullptr) return std::nullopt;
  const auto all = program_->views.all();
  return index < all.size() ? std::optional(all[index]) : std::nullopt;
}

bool session::may_have_others() const {
  return workers() > 1 || options_.takes_newcomers;
}

// -- who comes later ------------------------------------------------------------------------------------

std::uint64_t session::first_clock() const {
  return program_ == nullptr ? 0 : program_->newcomers.joined_at().value_or(0);
}

void session::give_state(std::uint64_t clock, std::span<const std::byte> bytes, std::uint64_t own) {
  require_training();
  if (!options_.takes_newcomers)
    throw session_error("state is given, but this worker was not joined with newcomers=accept");
  if (bytes.empty() || own > bytes.size())
    throw session_error("the state has " + std::to_string(bytes.size()) + " bytes, of which " +
                        std::to_string(own) +
                        " are this worker's own: expected 1 or more, and no more than that");
  const auto gift = program_->clocks.give_state(clock);
  if (gift == clock_gate::gift::never_asked)
    throw session_error("the state of clock " + std::to_string(clock) +
                        " is given, and nobody has asked for it: poseidon_begin_clock has to "
                        "answer POSEIDON_GIVE_STATE first");
  if (gift == clock_gate::gift::too_late) return;
  program_->newcomers.give(clock, bytes, own);
  program_->caller.tell(state_given{clock_id{clock}});
}

std::optional<std::span<const std::byte>> session::state_that_came() const {
  if (phase_ != phase::training || !program_->newcomers.joined_at()) return std::nullopt;
  return program_->newcomers.came();
}

/// What a lost worker means is the same for all of them.
void session::require_same_end() {
  if (options_.outlives_losses == program_->outlives_losses) return;
  const auto words = [](bool outlives) { return outlives ? "on-loss=go-on" : "on-loss=end"; };
  throw session_error(std::string("worker 0 has joined with the option ") +
                      words(program_->outlives_losses) + ", and this one with " +
                      words(options_.outlives_losses) +
                      ": give all workers the same option, and the same mode");
}

}  // namespace poseidon::library
