// apps/data/verbs.hpp - what poseidon-data does, a verb for each.
#pragma once
#include "apps/terminal/reporter.hpp"
#include "data/database.hpp"

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace poseidon::app {

/// The verb's words on the command line, and what it does if they are there. `run` returns the exit code.
/// Errors   of run: std::exception with one line that says what is wrong.
struct verb {
  CLI::App* command = nullptr;
  std::function<int(reporter&)> run;
};

inline constexpr int incomplete = 1;  ///< exit code: written, but not everything could be read

/// Each adds its words to `app`; what they say is kept where `run` finds it.
[[nodiscard]] std::vector<verb> add_convert(CLI::App& app);
[[nodiscard]] verb add_mean(CLI::App& app);
[[nodiscard]] verb add_partition(CLI::App& app);
[[nodiscard]] verb add_merge(CLI::App& app);
[[nodiscard]] verb add_extract(CLI::App& app);
[[nodiscard]] verb add_info(CLI::App& app);

}  // namespace poseidon::app
