// apps/terminal/progress_group.hpp - hands what a run reports on to everything that wants to know it.
#pragma once
#include "actors/core/progress.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace poseidon::app {

/// Hears some of what a run reports, and passes nothing on: a file beside the display.
class run_listener : public progress {
 public:
  void trained(const iteration&, const std::vector<output_value>&) override {}
  void tested(std::size_t, std::uint64_t, const std::vector<double>&,
              const std::vector<output_value>&) override {}
  void snapshot(std::uint64_t, const std::string&, const std::string&) override {}
  void viewed(const view&) override {}
  void promised(const promise&) override {}
  void note(const std::string&) override {}
  void warning(const std::string&) override {}
};

/// The display, which also shows long tasks, and listeners.
class progress_group : public progress {
 public:
  explicit progress_group(std::shared_ptr<progress> display) : all_{std::move(display)} {}
  /// Before the run begins. What a listener does for a report lasts no longer than a call of progress may.
  void add(std::shared_ptr<run_listener> listener) { all_.push_back(std::move(listener)); }

  /// After the run has ended: listeners finish what they write. What they have to say reaches the display.
  void close() { all_.resize(1); }

  void trained(const iteration& i, const std::vector<output_value>& outputs) override {
    for (const auto& one : all_) one->trained(i, outputs);
  }
  void stepped(const step& s) override {
    for (const auto& one : all_) one->stepped(s);
  }
  void tested(std::size_t test_net, std::uint64_t clock, const std::vector<double>& means,
              const std::vector<output_value>& outputs) override {
    for (const auto& one : all_) one->tested(test_net, clock, means, outputs);
  }
  void snapshot(std::uint64_t clock, const std::string& path, const std::string& error) override {
    for (const auto& one : all_) one->snapshot(clock, path, error);
  }
  void viewed(const view& v) override {
    for (const auto& one : all_) one->viewed(v);
  }
  void promised(const promise& p) override {
    for (const auto& one : all_) one->promised(p);
  }
  void note(const std::string& line) override {
    for (const auto& one : all_) one->note(line);
  }
  void warning(const std::string& line) override {
    for (const auto& one : all_) one->warning(line);
  }
  void detail(const std::string& line) override {
    for (const auto& one : all_) one->detail(line);
  }
  [[nodiscard]] std::shared_ptr<void> working(long_task task) override {
    return all_.front()->working(std::move(task));
  }

 private:
  std::vector<std::shared_ptr<progress>> all_;  // the display first
};

}  // namespace poseidon::app
