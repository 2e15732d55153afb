#include "gpu/host_memory.hpp"

#include <map>
#include <mutex>
#include <utility>

namespace poseidon::gpu {
namespace {

/// One piece per request. Not for several threads.
class pinned_pieces final : public std::pmr::memory_resource {
 private:
  void* do_allocate(std::size_t bytes, std::size_t) override {
    pinned_memory piece(bytes);
    void* at = piece.bytes();
    pieces_.emplace(at, std::move(piece));
    return at;
  }
  void do_deallocate(void* at, std::size_t, std::size_t) override { pieces_.erase(at); }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  std::map<void*, pinned_memory> pieces_;
};

/// Small values (a bias) share pieces; big ones, which the pool hands on, have their own. std's synchronized_pool_resource keeps a pool
/// for each thread, which a thread gives up when it ends: that crashes where the resource goes at the same moment.
class host_memory final : public std::pmr::memory_resource {
 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    const std::lock_guard lock(mutex_);
    return pool_.allocate(bytes, alignment);
  }
  void do_deallocate(void* at, std::size_t bytes, std::size_t alignment) override {
    const std::lock_guard lock(mutex_);
    pool_.deallocate(at, bytes, alignment);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  std::mutex mutex_;
  pinned_pieces pieces_;
  std::pmr::unsynchronized_pool_resource pool_{&pieces_};
};

}  // namespace

std::shared_ptr<std::pmr::memory_resource> make_host_memory() {
  return std::make_shared<host_memory>();
}

}  // namespace poseidon::gpu
