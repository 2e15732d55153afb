// actors/core/long_task.hpp - something that may take long, for whoever shows how far it is.
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
  std::function<std::uint64_t()>
      done;  ///< asked from any thread, a few times a second, while the task lasts
  unit in = unit::count;
  bool training_pauses = false;  ///< meanwhile no iteration ends, and that is as it should be
};

/// Shows a task for as long as what this returns lives, or until all is done. May be empty: nobody looks.
using task_display = std::function<std::shared_ptr<void>(long_task)>;

/// Nothing where nobody looks.
[[nodiscard]] inline std::shared_ptr<void> show(const task_display& display, long_task task) {
  return display ? display(std::move(task)) : nullptr;
}

}  // namespace poseidon
