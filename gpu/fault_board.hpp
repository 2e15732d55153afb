// gpu/fault_board.hpp
//
// The errors that kernels find in their input, a label that is no class for example. A kernel cannot throw: it writes the
// error here and continues. The host copies the board with the results of a pass, and throws.
#pragma once
#include "gpu/kernels/labels.hpp"
#include "gpu/runtime/runtime.hpp"

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace poseidon::gpu {

class fault_board {
 public:
  /// The message for a number.
  using text = std::function<std::string(float)>;

  /// A place for each layer of a net, without an error at first.
  fault_board(stream& s, std::size_t layers);

  /// Device memory in which the layer's kernels raise an error; the same in every call. A later call replaces the message.
  [[nodiscard]] label_fault* at(std::size_t layer, text say);
  [[nodiscard]] std::size_t bytes() const { return texts_.size() * sizeof(label_fault); }
  /// Enqueues a copy of the board to bytes() of host memory.
  void copy(stream& s, void* to) const;
  /// The error of the first layer in net order when this copy was made, if there was one.
  [[nodiscard]] std::optional<std::string> read(const void* copy) const;

 private:
  mutable std::mutex mutex_;  // behind a Filter kernels are made while faults of others are read
  std::vector<text> texts_;
  device_memory board_;
};

}  // namespace poseidon::gpu
