// actors/core/long_task.hpp - work that may take long, for a display of its progress.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace poseidon {

struct long_task {
  enum class unit { count, bytes };

  std::string what;         ///< "opening data/train_lmdb"
  std::uint64_t total = 0;  ///< 0: not known
  /// Called from any thread, a few times a second, while the task lasts.
  std::function<std::uint64_t()> done;
  unit in = unit::count;
  bool training_pauses = false;  ///< no iteration ends meanwhile, as intended
};

/// Shows a task while the result lives, or until the task is done. Empty where there is no display.
using task_display = std::function<std::shared_ptr<void>(long_task)>;

/// Null without a display.
[[nodiscard]] inline std::shared_ptr<void> show(const task_display& display, long_task task) {
  return display ? display(std::move(task)) : nullptr;
}

}  // namespace poseidon
