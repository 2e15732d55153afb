// messages/wire/buffer_pool.hpp - where payloads without a place of their own are read to.
#pragma once
#include "messages/frames.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>

namespace poseidon {

/// The most that a link keeps of received values that are not yet used.
inline constexpr std::size_t link_pool_bytes = std::size_t{4} << 30;

/// Buffers that come back when their last payload dies, in whatever thread that is. New memory of
/// chunk size comes from the kernel page by page, zeroed: reading into used buffers saves both. The
/// pool may die before its buffers.
class buffer_pool {
 public:
  /// At most `limit_bytes` are out at a time.
  explicit buffer_pool(std::size_t limit_bytes);

  struct buffer {
    std::shared_ptr<void> owner;  ///< the last copy gives the memory back
    std::span<std::byte> bytes;   ///< aligned to 64 bytes; what it holds is unspecified
  };
  /// Any thread. Errors   std::length_error if more than the limit would be out.
  [[nodiscard]] buffer take(std::size_t bytes);

  [[nodiscard]] std::size_t bytes_out() const;
  [[nodiscard]] std::size_t bytes_kept() const;  ///< waiting to be taken again

 private:
  struct shelf;
  std::shared_ptr<shelf> shelf_;
};

}  // namespace poseidon
