// apps/node/console.hpp - a run's progress on a terminal (one live line) or in a file (plain lines).
#pragma once
#include "actors/progress.hpp"

#include <chrono>
#include <memory>
#include <mutex>
#include <string>

namespace poseidon::app {

enum class verbosity { quiet, info, debug };

/// Of --log-level's words.
[[nodiscard]] verbosity verbosity_of(const std::string& word);

class console : public progress {
 public:
  console(verbosity level, std::size_t nodes);
  ~console() override;
  void trained(const iteration& i, const std::vector<output_value>& outputs) override;
  void tested(std::size_t test_net, std::uint64_t clock, const std::vector<double>& means,
              const std::vector<output_value>& outputs) override;
  void snapshot(std::uint64_t clock, const std::string& path, const std::string& error) override;
  void note(const std::string& line) override;
  void detail(const std::string& line) override;

 private:
  void line(const std::string& text);
  void complain(const std::string& text);  // on standard error, at every level
  void live(const std::string& text);
  [[nodiscard]] double rate(std::uint64_t images);
  [[nodiscard]] std::string hidden(const iteration& i);

  verbosity level_;
  std::size_t nodes_;
  bool terminal_;
  bool live_shown_ = false;
  std::mutex mutex_;
  std::chrono::steady_clock::time_point began_, last_;
  std::uint64_t last_images_ = 0, first_clock_ = 0;
  std::uint64_t last_communication_ns_ = 0, last_exposed_ns_ = 0;
  bool any_ = false;
};

}  // namespace poseidon::app
