// apps/library/session_collect.cpp - the part of session that takes a whole clock's versions, in the order in which they come.
#include "apps/library/session.hpp"

#include <algorithm>
#include <utility>

namespace poseidon::library {

namespace {

using steady = std::chrono::steady_clock;

}  // namespace

void session::require_pushed(parameter_id parameter, std::uint64_t version) const {
  const auto& next = next_clock_[value(parameter)];
  if (version > next)
    throw session_error("version " + std::to_string(version) + " of \"" +
                        program_->declared[value(parameter)].name + "\" is waited for, but clock " +
                        std::to_string(next) + " has not been pushed");
}

/// Those that are here, or the first ones that come within `limit`.
std::vector<fresh_board::arrival> session::arrivals(std::span<const parameter_id> of,
                                                    std::uint64_t version, seconds limit) {
  auto came = program_->fresh.wait_for_some(of, version, seconds(0));
  if (came.empty() && limit.count() > 0) {
    const auto since = steady::now();
    came = program_->fresh.wait_for_some(of, version, limit);
    program_->waited_ns += (steady::now() - since) / std::chrono::nanoseconds(1);
  }
  if (!came.empty() && came.front().is == fresh_board::answer::failed)
    throw session_error(program_->fresh.error());
  return came;
}

/// False: the time is over.
bool session::all_are_here(std::uint64_t version, seconds limit) {
  const auto since = steady::now();
  const auto answer = program_->fresh.wait_for_all(version, limit);
  program_->waited_ns += (steady::now() - since) / std::chrono::nanoseconds(1);
  if (answer == fresh_board::answer::failed) throw session_error(program_->fresh.error());
  return answer == fresh_board::answer::here;
}

std::size_t session::collect(std::span<collected> wanted, std::uint64_t version, seconds limit) {
  require_training();
  const auto since = steady::now();
  program_->places->want_all_together();
  std::vector<collected*> missing;
  std::vector<parameter_id> asked;
  const auto ask_again = [&] {
    std::erase_if(missing, [](const auto* w) { return w->is != fresh_board::answer::not_yet; });
    asked.clear();
    for (const auto* w : missing) asked.push_back(w->parameter);
  };
  for (auto& w : wanted) {
    require_pushed(known(value(w.parameter)), version);
    missing.push_back(&w);
  }
  ask_again();
  const program_calls::waits waits(program_->calls);  // no push is kept back for others meanwhile
  tell_pushed();
  // What this writes over is lent, and is sent again if a worker is lost before one of them has all of the version.
  if (program_->outlives_losses && !all_are_here(version, left_of(limit, since)))
    return missing.size();
  bool for_program = false;
  while (!missing.empty() && !for_program) {
    const auto came = arrivals(asked, version, left_of(limit, since));
    if (came.empty()) break;
    for (const auto& [place, is] : came) {
      auto& w = *missing[place];
      w.is = is;
      if (is != fresh_board::answer::here) continue;
      if (w.to == nullptr)
        for_program = true;
      else
        std::copy_n(program_->values(w.parameter, version), values_of(value(w.parameter)), w.to);
    }
    ask_again();
  }
  if (missing.empty()) see_view();
  return missing.size();
}

}  // namespace poseidon::library
