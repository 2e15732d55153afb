#include "data/batch_filler.hpp"

#include "data/source.hpp"
#include "models/no_memory.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

namespace poseidon {
namespace {

// The threads of a replica on such a device, its streams and copies, use at most two cores.
constexpr std::size_t busy_beside_a_device = 2, most_readers = 16;

/// A batch that is being filled: each free thread takes the next sample.
class filling {
 public:
  filling(const sample_source& source, std::uint64_t first, std::size_t samples, batch& into)
      : source_(source), first_(first), samples_(samples), into_(into) {}

  /// Fills samples until none is left.
  void help() {
    const auto& shapes = source_.sample_shapes();
    std::vector<std::span<float>> tops(shapes.size());
    for (;;) {
      const auto i = next_.fetch_add(1, std::memory_order_relaxed);
      if (i >= samples_) return;
      for (std::size_t t = 0; t < tops.size(); ++t) {
        const auto values = into_.tops[t].size() / samples_;
        tops[t] = std::span(into_.tops[t]).subspan(i * values, values);
      }
      try {
        source_.fill(first_ + i, tops);
      } catch (...) {
        fail(i, std::current_exception());
      }
    }
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  /// Samples are taken in their order. Later ones need not be made any more; an earlier one may still fail, and its error is the one that is told.
  void fail(std::size_t sample, std::exception_ptr error) {
    next_ = samples_;
    const std::lock_guard lock(mutex_);
    if (sample > failed_) return;
    failed_ = sample;
    error_ = std::move(error);
  }

  const sample_source& source_;
  std::uint64_t first_;
  std::size_t samples_;
  batch& into_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;  // guards the members below
  std::size_t failed_ = std::numeric_limits<std::size_t>::max();
  std::exception_ptr error_;
};

}  // namespace

struct batch_filler::crew {
  explicit crew(std::size_t threads) {
    for (std::size_t i = 0; i < threads; ++i) members.emplace_back([this] { serve(); });
  }
  ~crew() {
    {
      const std::lock_guard lock(mutex);
      over = true;
    }
    called.notify_all();
    for (auto& m : members) m.join();
  }

  void fill(filling& with) {
    {
      const std::lock_guard lock(mutex);
      work = &with;
      busy = members.size();
      ++calls;
    }
    called.notify_all();
    with.help();
    std::unique_lock lock(mutex);
    left.wait(lock, [this] { return busy == 0; });
    work = nullptr;
  }

  void serve() {
    std::unique_lock lock(mutex);
    for (std::uint64_t answered = 0;;) {
      called.wait(lock, [&] { return over || calls != answered; });
      if (over) return;
      answered = calls;
      filling& with = *work;
      lock.unlock();
      with.help();
      lock.lock();
      if (--busy == 0) left.notify_one();
    }
  }

  std::mutex mutex;
  std::condition_variable called, left;
  filling* work = nullptr;  // the batch that all threads fill, until the last has finished
  std::size_t busy = 0;
  std::uint64_t calls = 0;
  bool over = false;
  std::vector<std::thread> members;  // last: they use the others
};

batch_filler::batch_filler(std::size_t threads)
    : crew_(threads > 1 ? std::make_unique<crew>(threads - 1) : nullptr) {}

batch_filler::~batch_filler() = default;

void batch_filler::fill(const sample_source& source, std::uint64_t first_sample,
                        std::int64_t batch_size, batch& into) {
  const auto& shapes = source.sample_shapes();
  const auto samples = static_cast<std::size_t>(batch_size);
  into.first_sample = first_sample;
  while (into.tops.size() > shapes.size()) into.tops.pop_back();
  while (into.tops.size() < shapes.size()) into.tops.emplace_back(into.memory);
  {
    const memory_for use("a batch that a data layer reads");
    for (std::size_t t = 0; t < shapes.size(); ++t)
      into.tops[t].resize(samples * static_cast<std::size_t>(count(shapes[t])));
  }
  filling all(source, first_sample, samples, into);
  if (crew_ == nullptr)
    all.help();
  else
    crew_->fill(all);
  all.rethrow();
}

std::size_t default_readers(bool is_asynchronous, std::size_t replicas, std::size_t cores) {
  if (!is_asynchronous) return 1;
  const auto each = cores / std::max<std::size_t>(replicas, 1);
  return each <= busy_beside_a_device ? 1 : std::min(each - busy_beside_a_device, most_readers);
}

void fill_batch(const sample_source& source, std::uint64_t first_sample, std::int64_t batch_size,
                batch& into) {
  batch_filler().fill(source, first_sample, batch_size, into);
}

}  // namespace poseidon
