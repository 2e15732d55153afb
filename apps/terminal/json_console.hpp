// apps/terminal/json_console.hpp - reports training as events for programs, one object per line on standard output. Their fields:
// docs/json-events.md.
#pragma once
#include "apps/terminal/run_display.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace poseidon::app {

class json_console : public run_display {
 public:
  json_console(verbosity level, std::size_t nodes);
  void tested(std::size_t test_net, std::uint64_t clock, const std::vector<double>& means,
              const std::vector<output_value>& outputs) override;
  void snapshot(std::uint64_t clock, const std::string& path, const std::string& error) override;
  void viewed(const view& v) override;
  void promised(const promise& p) override;
  void note(const std::string& line) override;
  void warning(const std::string& line) override;
  void detail(const std::string& line) override;
  /// Writes the event "end", and the reason on standard error, as without --json.
  void ended(int exit_code, const std::string& reason) override;

 private:
  void interval(const iteration& i, const std::vector<output_value>& outputs,
                const run_meter::interval& rates) override;
};

}  // namespace poseidon::app
