#include "apps/bare/batch_reader.hpp"

namespace poseidon::app {

batch_reader::batch_reader(std::shared_ptr<const sample_source> source,
                           std::function<std::uint64_t(std::uint64_t)> first_sample,
                           std::uint64_t batch, std::shared_ptr<std::pmr::memory_resource> memory,
                           std::size_t readers)
    : source_(std::move(source)),
      first_sample_(std::move(first_sample)),
      batch_(batch),
      // One in use and one that is returned late, besides those that are ready.
      pool_(
          ahead + 2,
          [this] {
            const std::lock_guard lock(mutex_);
            changed_.notify_all();
          },
          std::move(memory)),
      filler_(readers),
      thread_([this] { read(); }) {}

batch_reader::~batch_reader() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

std::shared_ptr<const batch> batch_reader::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !ready_.empty() || broken_; });
  if (ready_.empty()) std::rethrow_exception(broken_);
  auto values = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return values;
}

void batch_reader::read() {
  for (std::uint64_t n = 0;; ++n) {
    std::shared_ptr<batch> values;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] {
        if (values == nullptr && ready_.size() < ahead) values = pool_.try_take();
        return stop_ || values != nullptr;
      });
      if (stop_) break;
    }
    try {
      filler_.fill(*source_, first_sample_(n), static_cast<std::int64_t>(batch_), *values);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      broken_ = std::current_exception();
      changed_.notify_all();
      return;
    }
    const std::lock_guard lock(mutex_);
    ready_.push_back(std::move(values));
    changed_.notify_all();
  }
}

}  // namespace poseidon::app
