// actors/parameters/gradient_encoder.hpp
//
// Between a layer's gradient_sum and its gradient_push, where --wire reduces a parameter's format: rounds a node's
// gradient and adds the rounding error of each parameter to its gradient of the next clock. Chunks that never leave this
// node are rounded, too, so that the result of training does not depend on which node owns them.
//
// Threads: a stream calls encode(), in the order of clocks; the layer's gradient_push calls take().
#pragma once
#include "messages/frames.hpp"
#include "messages/wire/buffer_pool.hpp"
#include "models/device/wire_format.hpp"

#include <cstddef>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

namespace poseidon {

class gradient_encoder {
 public:
  /// By part, as in gradient_sum: format and number of values.
  struct part {
    wire_format format = wire_format::float32;
    std::size_t values = 0;
  };
  explicit gradient_encoder(const std::vector<part>& parts);

  [[nodiscard]] bool reduces(std::size_t i) const {
    return parts_[i].format != wire_format::float32;
  }

  /// Encodes the node's gradient of part i for the next clock; does nothing where the part is not reduced.
  void encode(std::size_t i, std::span<const float> total);

  /// The oldest encoded gradient of part i that has not been taken, wire_bytes(format, its values) of bytes.
  /// Errors   logic_bug where there is none.
  [[nodiscard]] payload take(std::size_t i);

 private:
  struct reduced {
    wire_format format;
    std::vector<float> residual;
    std::deque<payload> ready;  // more than one only where clocks overlap
  };
  std::vector<reduced> parts_;
  buffer_pool pool_;
  std::mutex mutex_;  // of `ready`
};

}  // namespace poseidon
