// actors/run/opening_task.hpp - shows how far the opening of a large source is, as a long task.
#pragma once
#include "actors/core/long_task.hpp"
#include "data/opening.hpp"

#include <string>

namespace poseidon {

/// For open_images() and open_database(): shows a bar from the first report of progress until the function is destroyed.
/// Empty without a display.
[[nodiscard]] opening_progress show_opening(const task_display& display, const std::string& source);

}  // namespace poseidon
