// apps/data/progress.hpp - how far a long command has come: a bar on a terminal, one line
// elsewhere.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace poseidon::app {

class progress {
 public:
  progress(std::string what, std::uint64_t total);
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;
  ~progress();  ///< clears an unfinished bar, so that an error starts on a line of its own

  void at(std::uint64_t done);
  void done(const std::string& result);  ///< the line that stays

 private:
  std::string what_;
  std::uint64_t total_;
  bool terminal_, drawn_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace poseidon::app
