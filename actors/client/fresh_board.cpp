#include "actors/client/fresh_board.hpp"

#include <algorithm>
#include <utility>

namespace poseidon {

/// Nothing: it may still come.
std::optional<fresh_board::answer> fresh_board::answer_now(parameter_id parameter,
                                                           std::uint64_t version) const {
  const auto& of = fresh_[parameter];
  if (of.versions > version)
    return of.nothing && of.versions == version + 1 ? answer::no_gradient : answer::here;
  if (!error_.empty() || (left_ && version > left_->version)) return answer::failed;
  return std::nullopt;
}

/// Waits until `came` says that what is waited for is here. The lock is held.
template <class F>
void fresh_board::wait_until(std::unique_lock<std::mutex>& lock, waiter& self,
                             std::chrono::duration<double> limit, F came) {
  if (came() || limit.count() <= 0) return;
  waiters_.push_back(&self);
  // A limit of years would overflow the clock.
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                             std::min(limit, std::chrono::duration<double>(1e8)));
  (void)self.woken.wait_until(lock, until, came);
  std::erase(waiters_, &self);
}

fresh_board::answer fresh_board::wait(parameter_id parameter, std::uint64_t version,
                                      std::chrono::duration<double> limit) {
  std::unique_lock lock(mutex_);
  waiter self{parameter, version, false, {}};
  std::optional<answer> found;
  wait_until(lock, self, limit,
             [&] { return (found = answer_now(parameter, version)).has_value(); });
  return found.value_or(answer::not_yet);
}

std::vector<fresh_board::arrival> fresh_board::wait_for_some(
    std::span<const parameter_id> parameters, std::uint64_t version,
    std::chrono::duration<double> limit) {
  std::unique_lock lock(mutex_);
  waiter self{std::nullopt, version, false, {}};
  std::vector<arrival> found;
  wait_until(lock, self, limit, [&] {
    std::optional<arrival> failed;
    for (std::size_t place = 0; place < parameters.size(); ++place) {
      const auto now = answer_now(parameters[place], version);
      if (now && *now != answer::failed)
        found.push_back({place, *now});
      else if (now && !failed)
        failed = {place, *now};
    }
    if (found.empty() && failed) found.push_back(*failed);
    return !found.empty();
  });
  return found;
}

std::vector<fresh_board::answer> fresh_board::look(std::span<const parameter_id> parameters,
                                                   std::uint64_t version) const {
  std::vector<answer> out;
  out.reserve(parameters.size());
  const std::lock_guard lock(mutex_);
  for (const auto p : parameters) {
    if (fresh_[p].versions <= version) break;
    out.push_back(*answer_now(p, version));
  }
  return out;
}

fresh_board::answer fresh_board::wait_for_all(std::uint64_t version,
                                              std::chrono::duration<double> limit) {
  std::unique_lock lock(mutex_);
  waiter self{std::nullopt, version, true, {}};
  const auto fails = [&] { return !error_.empty() || (left_ && version > left_->version); };
  wait_until(lock, self, limit, [&] { return has_all(version) || fails(); });
  return has_all(version) ? answer::here : fails() ? answer::failed : answer::not_yet;
}

bool fresh_board::is_whole(std::uint64_t version) const {
  const std::lock_guard lock(mutex_);
  return has_all(version);
}

std::string fresh_board::error() const {
  const std::lock_guard lock(mutex_);
  if (!error_.empty() || !left_) return error_;
  const auto clocks = std::to_string(left_->version);
  return left_->worker + " left after " + clocks + " clocks, and this worker trains clock " +
         clocks +
         " (the first is 0): the workers have different numbers of batches. Give all of them the "
         "same number, as a sampler of equal lengths or drop_last=True does. A worker that is to "
         "go before "
         "the others says so: poseidon_leave_others";
}

void fresh_board::publish(parameter_id parameter, std::uint64_t version, bool nothing) {
  const std::lock_guard lock(mutex_);
  if (version < fresh_[parameter].versions)
    return;  // where routes change, all versions are told again
  set(parameter, {version + 1, nothing});
  for (auto* w : waiters_)
    if (w->parameter.value_or(parameter) == parameter && w->version <= version &&
        (!w->wants_all || has_all(w->version)))
      w->woken.notify_all();
}

void fresh_board::set(parameter_id parameter, state to) {
  auto& of = fresh_[parameter];
  const auto before = at_version_.find(of.versions);
  if (--before->second == 0) at_version_.erase(before);
  ++at_version_[to.versions];
  of = to;
}

void fresh_board::go_back(std::uint64_t version) {
  const std::lock_guard lock(mutex_);
  for (const auto p : fresh_.ids())
    if (fresh_[p].versions > version + 1) set(p, {version + 1, false});
}

void fresh_board::left(const std::string& worker, std::uint64_t version) {
  const std::lock_guard lock(mutex_);
  if (!left_ || version < left_->version) left_ = {worker, version};
  wake_all();
}

std::optional<fresh_board::leaver> fresh_board::first_to_leave() const {
  const std::lock_guard lock(mutex_);
  return left_;
}

void fresh_board::fail(std::string text) {
  const std::lock_guard lock(mutex_);
  if (error_.empty()) error_ = std::move(text);
  wake_all();
}

void fresh_board::wake_all() {
  for (auto* w : waiters_) w->woken.notify_all();
}

}  // namespace poseidon
