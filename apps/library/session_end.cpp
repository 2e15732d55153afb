// apps/library/session_end.cpp - the part of session that is about how a worker leaves: when it is done, or because it gives up.
#include "apps/library/session.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <utility>

namespace poseidon::library {

namespace {

using steady = std::chrono::steady_clock;

/// How long actors may take to end once the run is over, and a failing node to say so.
constexpr seconds patience{10};

}  // namespace

session::~session() {
  if (host_ == nullptr) return;
  if (!process_.is_here()) {
    (void)host_.release();  // the child of a fork has none of its threads
    return;
  }
  give_up("its program ended without leaving the run");
  if (host_->ended(patience))
    end();
  else
    (void)host_.release();  // an actor hangs: better than a program that does
}

/// Why this worker cannot leave as one that is done; empty: it can.
std::optional<std::string> session::why_not_done() {
  if (phase_ != phase::training) return "its program ended before training began";
  for (std::size_t i = 1; i < next_clock_.size(); ++i)
    if (next_clock_[i] != next_clock_[0])
      return "its program ended in the middle of clock " +
             std::to_string(std::min(next_clock_[0].load(), next_clock_[i].load())) + ": \"" +
             program_->declared[next_clock_[i] < next_clock_[0] ? i : 0].name +
             "\" had not been pushed";
  return std::nullopt;
}

void session::give_up(const std::string& why) {
  if (std::exchange(gave_up_, true)) return;
  host_->give_up(why);
}

/// All actors have ended when this returns.
void session::end() {
  page_.reset();
  std::unique_ptr<node_host> host;
  {
    const std::lock_guard lock(ends_);
    host = std::move(host_);
    phase_ = phase::over;
  }
}

/// Returns  how many clocks it has trained; empty: there is nothing to end, because it was never begun or is over.
std::optional<std::uint64_t> session::begin_to_leave(const std::optional<std::string>& reason,
                                                     bool others_go_on) {
  const std::lock_guard lock(ends_);
  if (host_ == nullptr) {
    phase_ = phase::over;
    return std::nullopt;
  }
  tell_pushed();
  const auto before = phase_.load();
  const auto trained = next_clock_.empty() ? 0 : next_clock_[0].load();
  if (before == phase::leaving) {
    if (reason) give_up(*reason);
    return trained;
  }
  if (others_go_on && before == phase::training && may_have_others() && !program_->outlives_losses)
    throw session_error(
        "this worker is to leave while the others go on, and in this run (on-loss=end) they "
        "cannot go on without it");
  const auto why = reason ? reason : why_not_done();
  others_go_on_ = others_go_on;
  phase_ = phase::leaving;
  if (why)
    give_up(*why);
  else
    program_->caller.tell(program_done{trained, others_go_on});
  return trained;
}

/// False: the time is over.
bool session::await_end(std::uint64_t trained, seconds limit) {
  const auto since = steady::now();
  while (true) {
    // Another worker may leave after another number of clocks, now or later.
    const auto left = program_->fresh.first_to_leave();
    if (left && (others_go_on_ ? left->version < trained : left->version != trained)) {
      const std::lock_guard lock(ends_);
      give_up(
          "it trained " + plural(trained, "clock") + ", " + left->worker + " " +
          std::to_string(left->version) +
          ": all workers need the same number of batches (drop_last=True, or a sampler of equal "
          "lengths)");
    }
    constexpr seconds slice{0.05};
    const auto rest = left_of(limit, since);
    if (const auto result = host_->ended(std::min(rest, slice))) {
      result_ = result->error;
      return true;
    }
    if (rest.count() <= 0) return false;
  }
}

bool session::leave(const std::optional<std::string>& reason, bool others_go_on, seconds limit) {
  require_own_process();
  const auto since = steady::now();
  const auto trained = begin_to_leave(reason, others_go_on);
  const std::unique_lock waits(leaves_, left_of(limit, since));
  if (!waits) return false;
  if (trained && host_ != nullptr) {
    if (!await_end(*trained, left_of(limit, since))) return false;
    end();
  }
  if (!result_.empty()) throw session_error(result_);
  return true;
}

}  // namespace poseidon::library
