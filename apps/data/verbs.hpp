// apps/data/verbs.hpp - poseidon-data's verbs.
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

/// The verb's command line, and the function that runs it. `run` returns the exit code.
/// Errors   run throws std::exception with one line that names the problem.
struct verb {
  CLI::App* command = nullptr;
  std::function<int(reporter&)> run;
};

inline constexpr int incomplete = 1;  ///< exit code: written, but not everything could be read

/// Each adds its options to `app`, whose values `run` reads.
[[nodiscard]] std::vector<verb> add_convert(CLI::App& app);
[[nodiscard]] verb add_mean(CLI::App& app);
[[nodiscard]] verb add_partition(CLI::App& app);
[[nodiscard]] verb add_merge(CLI::App& app);
[[nodiscard]] verb add_extract(CLI::App& app);
[[nodiscard]] verb add_info(CLI::App& app);

}  // namespace poseidon::app
