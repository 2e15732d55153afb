// apps/terminal/caffe_log.hpp - training in the lines that Caffe logs through glog, for its parse_log.py, parse_log.sh and
// plot_training_log.py, and for scripts that read Caffe's logs:
//
//   I0304 17:05:09.000123  4711 caffe_log.cpp:60] Iteration 100, loss = 0.2153
//   I0304 17:05:09.000123  4711 caffe_log.cpp:65]     Train net output #0: loss = 0.2153 (* 1 = 0.2153 loss)
#pragma once
#include "apps/terminal/progress_group.hpp"
#include "apps/terminal/run_display.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <source_location>
#include <string>
#include <vector>

namespace poseidon::app {

/// "I0304 17:05:09.000123  4711 FILE:LINE] TEXT", local time. `severity`: I, W or E.
[[nodiscard]] std::string glog_line(
    char severity, const std::string& text, std::chrono::system_clock::time_point when,
    const std::source_location& from = std::source_location::current());

/// Writes one line for each thing that Caffe logs. Any thread.
class caffe_log {
 public:
  using sink = std::function<void(const std::string& line)>;
  explicit caffe_log(sink write) : write_(std::move(write)) {}

  /// "Solving NET", from which Caffe's scripts count the seconds.
  void began(const std::string& net, const std::string& policy);
  void trained(const progress::iteration& i, const std::vector<output_value>& outputs);
  void tested(std::size_t test_net, std::uint64_t clock, const std::vector<double>& means,
              const std::vector<output_value>& outputs);
  void snapshot(const std::string& path, const std::string& error);
  void note(const std::string& text);
  void warning(const std::string& text);
  /// "Optimization Done.", or why the run failed.
  void ended(const std::string& reason);

 private:
  void say(char severity, const std::string& text,
           const std::source_location& from = std::source_location::current());
  void say_outputs(const std::string& net, const std::vector<double>& values,
                   const std::vector<output_value>& outputs);

  sink write_;
  std::mutex mutex_;  // held for lines that belong together
};

/// --log-format caffe: these lines on standard error, as Caffe's.
class caffe_console : public run_display {
 public:
  caffe_console(verbosity level, std::size_t nodes);
  void began(const std::string& net, const std::string& policy) override;
  void tested(std::size_t test_net, std::uint64_t clock, const std::vector<double>& means,
              const std::vector<output_value>& outputs) override;
  void snapshot(std::uint64_t clock, const std::string& path, const std::string& error) override;
  void note(const std::string& line) override;
  void warning(const std::string& line) override;
  void detail(const std::string& line) override;
  void ended(int exit_code, const std::string& reason) override;

 private:
  void interval(const iteration& i, const std::vector<output_value>& outputs,
                const run_meter::interval& rates) override;
  caffe_log log_;
};

/// --log_dir: these lines in a file.
class log_file : public run_listener {
 public:
  /// Creates poseidon-node.HOST.USER.log.INFO.DATE-TIME.PID, and the link poseidon-node.INFO to it, as glog does.
  /// Errors   spec_error: the file cannot be written.
  log_file(const std::filesystem::path& folder, verbosity level);

  void began(const std::string& net, const std::string& policy) { log_.began(net, policy); }
  void ended(const std::string& reason) { log_.ended(reason); }
  void trained(const iteration& i, const std::vector<output_value>& outputs) override;
  void tested(std::size_t test_net, std::uint64_t clock, const std::vector<double>& means,
              const std::vector<output_value>& outputs) override;
  void snapshot(std::uint64_t clock, const std::string& path, const std::string& error) override;
  void note(const std::string& line) override;
  void warning(const std::string& line) override;
  void detail(const std::string& line) override;

 private:
  verbosity level_;
  std::ofstream file_;
  caffe_log log_;
};

}  // namespace poseidon::app
