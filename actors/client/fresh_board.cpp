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

fresh_board::answer fresh_board::wait(parameter_id parameter, std::uint64_t version,
                                      std::chrono::duration<double> limit) {
  std::unique_lock lock(mutex_);
  if (const auto now = answer_now(parameter, version)) return *now;
  if (limit.count() <= 0) return answer::not_yet;
  waiter self{parameter, version, {}};
  waiters_.push_back(&self);
  // A limit of years would overflow the clock.
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                             std::min(limit, std::chrono::duration<double>(1e8)));
  std::optional<answer> found;
  const bool woken = self.woken.wait_until(
      lock, until, [&] { return (found = answer_now(parameter, version)).has_value(); });
  std::erase(waiters_, &self);
  return woken ? *found : answer::not_yet;
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

std::string fresh_board::error() const {
  const std::lock_guard lock(mutex_);
  if (!error_.empty() || !left_) return error_;
  const auto clocks = std::to_string(left_->version);
  return left_->worker + " left after " + clocks + " clocks, and this worker trains clock " +
         clocks +
         " (the first is 0): the workers have different numbers of batches. Give all of them the "
         "same number, as a sampler of equal lengths or drop_last=True does";
}

void fresh_board::publish(parameter_id parameter, std::uint64_t version, bool nothing) {
  const std::lock_guard lock(mutex_);
  auto& of = fresh_[parameter];
  if (version < of.versions) return;  // where routes change, all versions are told again
  of = {version + 1, nothing};
  for (auto* w : waiters_)
    if (w->parameter == parameter && w->version <= version) w->woken.notify_all();
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
