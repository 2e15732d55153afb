// cpu/buffer.hpp - float memory that starts at a cache line and at zero.
#pragma once
#include "models/no_memory.hpp"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace poseidon::cpu {

/// Owns `size` floats, all zero at first, with 64 readable bytes behind them: vector kernels may
/// load (never store) past the end of a row.
class buffer {
 public:
  buffer() = default;
  explicit buffer(std::size_t size) : size_(size) {
    const std::size_t bytes = (size * sizeof(float) + 127) / 64 * 64;
    memory_.reset(static_cast<float*>(std::aligned_alloc(64, bytes)));
    if (!memory_) throw no_memory(bytes);
    std::memset(memory_.get(), 0, bytes);
  }
  [[nodiscard]] float* data() { return memory_.get(); }
  [[nodiscard]] const float* data() const { return memory_.get(); }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  struct release {
    void operator()(float* p) const { std::free(p); }
  };
  std::unique_ptr<float, release> memory_;
  std::size_t size_ = 0;
};

}  // namespace poseidon::cpu
