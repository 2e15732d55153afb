#include "messages/wire/buffer_pool.hpp"

#include <new>
#include <stdexcept>
#include <string>

namespace poseidon {
namespace {

constexpr std::align_val_t alignment{64};

struct free_aligned {
  void operator()(std::byte* p) const { ::operator delete(p, alignment); }
};
using memory = std::unique_ptr<std::byte, free_aligned>;

constexpr std::size_t granule = 4096;

/// By operator new, because a program's own says how much it wanted when it fails.
memory allocate(std::size_t bytes) {
  return memory(static_cast<std::byte*>(::operator new(bytes, alignment)));
}

}  // namespace

struct buffer_pool::shelf {
  std::mutex mutex;
  std::multimap<std::size_t, memory> free;  // by capacity
  std::size_t limit = 0, out = 0, kept = 0;
};

buffer_pool::buffer_pool(std::size_t limit_bytes) : shelf_(std::make_shared<shelf>()) {
  shelf_->limit = limit_bytes;
}

buffer_pool::buffer buffer_pool::take(std::size_t bytes) {
  auto capacity = (bytes / granule + 1) * granule;
  memory m;
  {
    const std::lock_guard lock(shelf_->mutex);
    // A much larger one would be missing where it is needed.
    const auto fit = shelf_->free.lower_bound(capacity);
    if (fit != shelf_->free.end() && fit->first <= 2 * capacity) {
      capacity = fit->first;
      m = std::move(fit->second);
      shelf_->free.erase(fit);
      shelf_->kept -= capacity;
    }
    if (shelf_->out + capacity > shelf_->limit) {
      throw std::length_error(std::to_string(shelf_->out + capacity) +
                              " bytes wait to be used here, at most " +
                              std::to_string(shelf_->limit) + " may");
    }
    shelf_->out += capacity;
  }
  if (!m) m = allocate(capacity);
  auto* raw = m.release();
  const auto back = [shelf = shelf_, capacity](void* p) {
    memory again(static_cast<std::byte*>(p));
    const std::lock_guard lock(shelf->mutex);
    shelf->out -= capacity;
    shelf->kept += capacity;
    shelf->free.emplace(capacity, std::move(again));
  };
  return {std::shared_ptr<void>(raw, back), {raw, bytes}};
}

std::size_t buffer_pool::bytes_out() const {
  const std::lock_guard lock(shelf_->mutex);
  return shelf_->out;
}

std::size_t buffer_pool::bytes_kept() const {
  const std::lock_guard lock(shelf_->mutex);
  return shelf_->kept;
}

}  // namespace poseidon
