// actors/run/opening_task.hpp - a large source on its way to being open, as a long task.
#pragma once
#include "actors/core/long_task.hpp"
#include "data/opening.hpp"

#include <string>

namespace poseidon {

/// For open_images() and open_database(): a bar while `source` is opened, if it says how far that is, until this is gone.
/// Nothing where nobody looks.
[[nodiscard]] opening_progress show_opening(const task_display& display, const std::string& source);

}  // namespace poseidon
