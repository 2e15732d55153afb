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
