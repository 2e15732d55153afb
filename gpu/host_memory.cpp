#include "gpu/host_memory.hpp"

#include <map>
#include <mutex>

namespace poseidon::gpu {
namespace {

/// One piece per request.
class pinned_pieces final : public std::pmr::memory_resource {
 private:
  void* do_allocate(std::size_t bytes, std::size_t) override {
    pinned_memory piece(bytes);
    const std::lock_guard lock(mutex_);
    void* at = piece.bytes();
    pieces_.emplace(at, std::move(piece));
    return at;
  }
  void do_deallocate(void* at, std::size_t, std::size_t) override {
    const std::lock_guard lock(mutex_);
    pieces_.erase(at);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  std::mutex mutex_;
  std::map<void*, pinned_memory> pieces_;
};

/// Small values (a bias) share pieces; big ones, which the pool hands on, have their own.
class host_memory {
 public:
  [[nodiscard]] std::pmr::memory_resource* pool() { return &pool_; }

 private:
  pinned_pieces pieces_;
  std::pmr::synchronized_pool_resource pool_{&pieces_};
};

}  // namespace

std::shared_ptr<std::pmr::memory_resource> make_host_memory() {
  auto memory = std::make_shared<host_memory>();
  return {memory, memory->pool()};
}

}  // namespace poseidon::gpu
