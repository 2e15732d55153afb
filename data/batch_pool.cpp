#include "data/batch_pool.hpp"

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

}  // namespace poseidon
