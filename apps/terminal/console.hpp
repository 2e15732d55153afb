// apps/terminal/console.hpp - reports training in plain lines on standard output, one per display interval; intervals are left
// out where live lines are drawn on that terminal.
#pragma once
#include "apps/terminal/run_display.hpp"

#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

namespace poseidon::app {

class console : public run_display {
 public:
  console(verbosity level, std::size_t nodes);
  void tested(std::size_t test_net, std::uint64_t clock, const std::vector<double>& means,
              const std::vector<output_value>& outputs) override;
  void snapshot(std::uint64_t clock, const std::string& path, const std::string& error) override;
  void note(const std::string& line) override;
  void warning(const std::string& line) override;
  void detail(const std::string& line) override;
  /// Prints the reason on standard error; before it the last interval's line, if intervals were left out.
  void ended(int exit_code, const std::string& reason) override;

 private:
  void interval(const iteration& i, const std::vector<output_value>& outputs,
                const run_meter::interval& rates) override;
  std::mutex mutex_;
  std::atomic<bool> has_snapshot_{false};  // of this run, so far
  std::string last_interval_;              // the last interval's line, if it has not been written
};

/// "iteration 120/2300: loss 0.51 lr 0.01 images/s 4813 hidden 97% net 24.8/24.4 MB/s left 40s"
[[nodiscard]] std::string interval_line(const progress::iteration& i,
                                        const std::vector<output_value>& outputs,
                                        const run_meter::interval& rates);

}  // namespace poseidon::app
