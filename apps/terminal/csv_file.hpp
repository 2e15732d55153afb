// apps/terminal/csv_file.hpp - --csv: the outputs of a run as tables, in the columns of Caffe's parse_log.
#pragma once
#include "actors/core/progress.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace poseidon::app {

/// Writes a row for each display interval to FILE, a row for each test of test net T to FILE with ".testT" before its suffix,
/// and tells everything to `next`, too. Any thread. A row is written whole and at once. If one cannot be written, a warning says
/// so, and that table gets no more rows; training goes on.
class csv_file : public progress {
 public:
  /// `resumed`: rows are added to tables that are there already, else those are replaced.
  /// Errors   spec_error: `path` cannot be written.
  csv_file(std::filesystem::path path, bool resumed, std::shared_ptr<progress> next);

  void trained(const iteration& i, const std::vector<output_value>& outputs) override;
  void tested(std::size_t test_net, std::uint64_t clock, const std::vector<double>& means,
              const std::vector<output_value>& outputs) override;
  void snapshot(std::uint64_t clock, const std::string& path, const std::string& error) override {
    next_->snapshot(clock, path, error);
  }
  void stepped(const step& s) override { next_->stepped(s); }
  void note(const std::string& line) override { next_->note(line); }
  void warning(const std::string& line) override { next_->warning(line); }
  void detail(const std::string& line) override { next_->detail(line); }
  [[nodiscard]] std::shared_ptr<void> working(long_task task) override {
    return next_->working(std::move(task));
  }

 private:
  struct table {
    std::filesystem::path path;
    std::ofstream file;
    bool has_rows = false, broken = false;
  };
  void open(table& t) const;
  /// Errors are told, not thrown.
  void write(table& t, const std::string& header, const std::string& row);
  [[nodiscard]] double seconds() const;

  std::filesystem::path path_;
  bool resumed_;
  std::shared_ptr<progress> next_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  table training_;
  std::map<std::size_t, table> tests_;  // by test net
};

}  // namespace poseidon::app
