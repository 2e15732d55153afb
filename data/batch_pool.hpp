// data/batch_pool.hpp
//
// A fixed number of batch buffers that go round between a data_source and the layers that read
// them. No free buffer, no reading ahead: the pool is the back-pressure.
#pragma once
#include "models/device/device.hpp"

#include <cstdint>
#include <functional>
#include <memory>

namespace poseidon {

/// Thread-safe. Buffers may outlive the pool.
class batch_pool {
 public:
  /// `when_back` is called, by whichever thread dropped the last reference, after a buffer has come
  /// home. `memory`: where the values lie; empty: anywhere.
  explicit batch_pool(std::size_t buffers, std::function<void()> when_back = {},
                      std::shared_ptr<std::pmr::memory_resource> memory = {});

  /// A buffer that nobody else refers to, with the contents of its last use; null when all are out.
  /// It comes home when the last copy of the pointer goes; send it as shared_ptr<const batch>.
  [[nodiscard]] std::shared_ptr<batch> try_take();

  [[nodiscard]] std::size_t buffers() const;
  [[nodiscard]] std::size_t free() const;  ///< equals buffers() once all have come home

 private:
  struct state;
  std::shared_ptr<state> state_;
};

}  // namespace poseidon
