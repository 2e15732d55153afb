// apps/bare/batch_reader.hpp - reads batches ahead in threads of its own, as a data_source does.
#pragma once
#include "data/batch_filler.hpp"
#include "data/batch_pool.hpp"
#include "data/source.hpp"

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace poseidon::app {

class batch_reader {
 public:
  /// Batch n begins with sample `first_sample(n)`, lies in `memory`, and is filled by `readers` threads.
  batch_reader(std::shared_ptr<const sample_source> source,
               std::function<std::uint64_t(std::uint64_t)> first_sample, std::uint64_t batch,
               std::shared_ptr<std::pmr::memory_resource> memory, std::size_t readers);
  ~batch_reader();
  batch_reader(const batch_reader&) = delete;
  batch_reader& operator=(const batch_reader&) = delete;

  /// Waits for the next batch.
  /// Errors   what the source throws.
  [[nodiscard]] std::shared_ptr<const batch> next();

 private:
  void read();

  static constexpr std::size_t ahead = 2;
  std::shared_ptr<const sample_source> source_;
  std::function<std::uint64_t(std::uint64_t)> first_sample_;
  std::uint64_t batch_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<const batch>> ready_;
  std::exception_ptr broken_;
  bool stop_ = false;
  batch_pool pool_;
  batch_filler filler_;
  std::thread thread_;  // last: uses the members above
};

}  // namespace poseidon::app
