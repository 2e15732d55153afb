// apps/terminal/csv_file.hpp - --csv: the outputs of a run as tables, in the columns of Caffe's parse_log.
#pragma once
#include "apps/terminal/growing_files.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace poseidon::app {

/// Writes a row for each display interval to FILE, and a row for each test of test net T to FILE with ".testT" before its
/// suffix. Any thread.
class csv_file : public growing_files {
 public:
  /// `resumed_at`: the run goes on at this iteration. Tables that are there already keep their rows of earlier iterations, and
  /// the seconds go on. Empty: tables are begun anew. `display`: outlives this object.
  /// Errors   spec_error: `path` cannot be written.
  csv_file(std::filesystem::path path, std::optional<std::uint64_t> resumed_at, progress& display);

  void trained(const iteration& i, const std::vector<output_value>& outputs) override;
  void tested(std::size_t test_net, std::uint64_t clock, const std::vector<double>& means,
              const std::vector<output_value>& outputs) override;

 private:
  struct table : growing_file {
    std::string header;  // with its line end; empty: not yet written
    double seconds = 0;  // of the last row that was kept
  };
  void open(table& t) const;
  void keep_rows(table& t) const;
  /// Errors are told, not thrown.
  void write(table& t, const std::string& header, const std::string& row);
  [[nodiscard]] double seconds() const;

  std::filesystem::path path_;
  std::optional<std::uint64_t> resumed_at_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  table training_;
  std::map<std::size_t, table> tests_;  // by test net
};

}  // namespace poseidon::app
