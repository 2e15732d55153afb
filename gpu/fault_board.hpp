// gpu/fault_board.hpp
//
// What kernels have found wrong with the numbers that they were given, a label that is no class for example. A kernel
// cannot throw: it writes here and goes on, and the host, which copies the board out with a pass's results, speaks.
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
  /// What to say of a number.
  using text = std::function<std::string(float)>;

  /// A place for each layer of a net; none has found anything.
  fault_board(stream& s, std::size_t layers);

  /// Device memory where the layer's kernels raise; the same for every call. A later call replaces what is said.
  [[nodiscard]] label_fault* at(std::size_t layer, text say);
  [[nodiscard]] std::size_t bytes() const { return texts_.size() * sizeof(label_fault); }
  /// Enqueues a copy of the board as it is then, to bytes() of host memory.
  void copy(stream& s, void* to) const;
  /// What the first layer in net order had found when this copy was made; nothing if none had.
  [[nodiscard]] std::optional<std::string> read(const void* copy) const;

 private:
  mutable std::mutex mutex_;  // behind a Filter kernels are made anew while others' faults are read
  std::vector<text> texts_;
  device_memory board_;
};

}  // namespace poseidon::gpu
