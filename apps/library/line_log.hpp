// apps/library/line_log.hpp - what a node would show its user, kept for the program that asks for it.
#pragma once
#include "actors/core/progress.hpp"

#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace poseidon::library {

/// Any thread may use it. It keeps the newest `most` lines.
class line_log : public progress {
 public:
  static constexpr std::size_t most = 1000;

  void trained(const iteration& i, const std::vector<output_value>& outputs) override;
  void tested(std::size_t, std::uint64_t, const std::vector<double>&,
              const std::vector<output_value>&) override {}
  void snapshot(std::uint64_t, const std::string&, const std::string&) override {}
  void note(const std::string& line) override { add(line); }
  void warning(const std::string& line) override { add("warning: " + line); }

  /// The oldest line that nobody has taken; empty: there is none.
  [[nodiscard]] std::optional<std::string> take();

 private:
  void add(const std::string& text);

  std::mutex mutex_;
  std::deque<std::string> lines_;
};

}  // namespace poseidon::library
