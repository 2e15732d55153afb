// actors/training/debug_info.hpp
//
// The solver's debug_info, in Caffe's words: after each layer's kernel the mean absolute values of what it has
// written, at the clocks that are displayed. For one replica of worker 0. Runs in its stream between kernels, and in
// copy_out for gradients that are copied from a device.
#pragma once
#include "actors/core/progress.hpp"
#include "models/device/device.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace poseidon {

struct debug_info_setup {
  const net* graph = nullptr;  ///< outlives it
  std::shared_ptr<replica> copy;
  std::vector<const parameter_values*> values;  ///< by parameter
  std::uint64_t display = 0;                    ///< the solver's; 0: never
  std::shared_ptr<progress> to;
};

class debug_info {
 public:
  explicit debug_info(debug_info_setup setup);

  /// After the layer's kernel of a pass of `clock`.
  void forward(std::size_t layer, std::uint64_t clock);
  /// Also shows the norms of all parameters when the last layer that learns has run.
  void backward(std::size_t layer, std::uint64_t clock);

 private:
  [[nodiscard]] bool shown(std::uint64_t clock) const;
  [[nodiscard]] std::span<const float> data(std::size_t parameter) const;
  void say(const char* direction, std::size_t layer, const std::string& what,
           std::span<const float> values);
  void say_norms();

  debug_info_setup setup_;
  std::mutex mutex_;
  std::size_t learners_ = 0;  // layers whose backward writes gradients
  std::size_t learned_ = 0;   // learners that have run in this pass
  std::vector<float> scratch_;
};

}  // namespace poseidon
