#include "data/batch_pool.hpp"

#include "data/source.hpp"

#include <mutex>
#include <utility>

namespace poseidon {

struct batch_pool::state {
  std::shared_ptr<std::pmr::memory_resource> memory;  // outlives the buffers
  std::size_t buffers = 0;
  std::function<void()> when_back;
  std::mutex lock;
  std::vector<std::unique_ptr<batch>> home;

  void come_home(batch* b) {
    std::unique_ptr<batch> owner(b);
    {
      const std::lock_guard guard(lock);
      home.push_back(std::move(owner));  // reserved for all: never allocates
    }
    if (when_back) when_back();
  }
};

batch_pool::batch_pool(std::size_t buffers, std::function<void()> when_back,
                       std::shared_ptr<std::pmr::memory_resource> memory)
    : state_(std::make_shared<state>()) {
  state_->memory = std::move(memory);
  state_->buffers = buffers;
  state_->when_back = std::move(when_back);
  state_->home.reserve(buffers);
  for (std::size_t i = 0; i < buffers; ++i) {
    state_->home.push_back(std::make_unique<batch>());
    if (state_->memory) state_->home.back()->memory = state_->memory.get();
  }
}

std::shared_ptr<batch> batch_pool::try_take() {
  std::unique_ptr<batch> taken;
  {
    const std::lock_guard guard(state_->lock);
    if (state_->home.empty()) return nullptr;
    taken = std::move(state_->home.back());
    state_->home.pop_back();
  }
  return {taken.release(), [home = state_](batch* b) { home->come_home(b); }};
}

std::size_t batch_pool::buffers() const {
  return state_->buffers;
}

std::size_t batch_pool::free() const {
  const std::lock_guard guard(state_->lock);
  return state_->home.size();
}

void fill_batch(const sample_source& source, std::uint64_t first_sample, std::int64_t batch_size,
                batch& into) {
  const auto& shapes = source.sample_shapes();
  const auto samples = static_cast<std::size_t>(batch_size);
  into.first_sample = first_sample;
  while (into.tops.size() > shapes.size()) into.tops.pop_back();
  while (into.tops.size() < shapes.size()) into.tops.emplace_back(into.memory);
  std::vector<std::span<float>> tops(shapes.size());
  std::vector<std::size_t> values(shapes.size());
  for (std::size_t t = 0; t < shapes.size(); ++t) {
    values[t] = static_cast<std::size_t>(count(shapes[t]));
    into.tops[t].resize(samples * values[t]);
  }
  for (std::size_t i = 0; i < samples; ++i) {
    for (std::size_t t = 0; t < shapes.size(); ++t)
      tops[t] = std::span(into.tops[t]).subspan(i * values[t], values[t]);
    source.fill(first_sample + i, tops);
  }
}

}  // namespace poseidon
