#include "actors/telemetry/pauses.hpp"

#include <utility>

namespace poseidon {

std::shared_ptr<void> pauses::begin(long_task task, std::shared_ptr<void> shown) {
  auto kept = std::make_shared<const long_task>(std::move(task));
  {
    const std::lock_guard lock(state_->mutex);
    state_->meter.begin(clock::now());
    state_->tasks.push_back(kept);
  }
  auto* until = state_.get();  // any pointer but null: destroying it is what ends the pause
  return {until, [state = state_, kept = std::move(kept), shown = std::move(shown)](void*) {
            const std::lock_guard lock(state->mutex);
            state->meter.end(clock::now());
            std::erase(state->tasks, kept);
          }};
}

void pauses::computed() {
  const std::lock_guard lock(state_->mutex);
  state_->meter.computed(clock::now());
}

double pauses::paused_s() const {
  const std::lock_guard lock(state_->mutex);
  return std::chrono::duration<double>(state_->meter.paused(clock::now())).count();
}

std::optional<pauses::work> pauses::under_way() const {
  const std::lock_guard lock(state_->mutex);
  if (state_->tasks.empty()) return std::nullopt;
  const auto& task = *state_->tasks.back();
  return work{task.what, task.done ? task.done() : 0, task.total};
}

}  // namespace poseidon
