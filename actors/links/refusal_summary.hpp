// actors/links/refusal_summary.hpp
//
// Tells of refused connections without letting strangers fill the log: the first is told at once, those of the next ten seconds
// in one line.
#pragma once
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>

namespace poseidon {

/// It reads no clock: the caller passes the time.
class refusal_summary {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds quiet{10};

  /// A connection from `host` was refused. Returns  the line to tell now, if any.
  [[nodiscard]] std::optional<std::string> add(const std::string& host, std::string text,
                                               time_point now);
  /// The line about those that were not told, when ten seconds have passed since the last line.
  [[nodiscard]] std::optional<std::string> due(time_point now);

 private:
  static constexpr std::size_t most_hosts = 1000;  // that are counted by name
  [[nodiscard]] std::string summary(time_point::duration since) const;

  std::optional<time_point> told_;
  std::map<std::string, std::size_t> untold_;  // by host
  std::size_t count_ = 0;
  std::string last_;
};

}  // namespace poseidon
