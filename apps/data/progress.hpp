// apps/data/progress.hpp - progress of a verb with long work: a bar meanwhile, one line and one event at the end.
#pragma once
#include "apps/terminal/reporter.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace poseidon::app {

class progress {
 public:
  progress(reporter& out, std::string command, std::string target, std::uint64_t total);

  void at(std::uint64_t done) { done_.store(done, std::memory_order_relaxed); }  ///< any thread
  /// "convert train_lmdb: 30 images in 0.1 s", and the event "result" with command, path, `more` and seconds.
  void done(const std::string& result, json_event more = {});

 private:
  reporter& out_;
  std::string command_, target_;
  std::atomic<std::uint64_t> done_{0};
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::shared_ptr<void> shown_;  // last member: destroyed before the ones that it reads
};

}  // namespace poseidon::app
