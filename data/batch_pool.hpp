// data/batch_pool.hpp
//
// A fixed number of batch buffers that circulate between a data_source and the layers that read
// them. Without a free buffer data_source does not read ahead: the pool is the back-pressure.
#pragma once
#include "models/device/device.hpp"

#include <cstdint>
#include <functional>
#include <memory>

namespace poseidon {

/// Thread-safe. Buffers may outlive the pool.
class batch_pool {
 public:
  /// `when_back` is called after a buffer has returned to the pool, by the thread that dropped the last
  /// reference. `memory`: where the values lie; empty: anywhere.
  explicit batch_pool(std::size_t buffers, std::function<void()> when_back = {},
                      std::shared_ptr<std::pmr::memory_resource> memory = {});

  /// An unused buffer, with the contents of its last use; null when all are in use. It returns to the
  /// pool when the last copy of the pointer is destroyed; send it as shared_ptr<const batch>.
  [[nodiscard]] std::shared_ptr<batch> try_take();

  [[nodiscard]] std::size_t buffers() const;
  [[nodiscard]] std::size_t free() const;  ///< equals buffers() once all have returned

 private:
  struct state;
  std::shared_ptr<state> state_;
};

}  // namespace poseidon
