// tests/gpu/streams/typed_memory.hpp - values of either type in the memory of a simulated GPU.
#pragma once
#include "gpu/runtime/runtime.hpp"
#include "gpu/runtime/values.hpp"

#include <span>
#include <vector>

namespace poseidon::test {

inline constexpr gpu::value_type both_types[] = {gpu::value_type::float32,
                                                 gpu::value_type::bfloat16};

class typed_memory {
 public:
  typed_memory(gpu::value_type type, std::span<const float> of)
      : type_(type),
        size_(of.size()),
        memory_(0, std::max<std::size_t>(of.size(), 1) * width(type)) {
    for (std::size_t i = 0; i < size_; ++i) {
      if (type_ == gpu::value_type::float32)
        static_cast<float*>(at())[i] = of[i];
      else
        static_cast<gpu::bfloat16*>(at())[i] = gpu::round_to<gpu::bfloat16>(of[i]);
    }
  }

  [[nodiscard]] gpu::values at() const { return {memory_.bytes(), type_}; }
  [[nodiscard]] float read_one(std::size_t i) const {
    return type_ == gpu::value_type::float32 ? static_cast<float*>(at())[i]
                                             : to_float(static_cast<gpu::bfloat16*>(at())[i]);
  }
  /// When its stream has finished.
  [[nodiscard]] std::vector<float> read() const {
    std::vector<float> v(size_);
    for (std::size_t i = 0; i < size_; ++i) v[i] = read_one(i);
    return v;
  }

 private:
  gpu::value_type type_;
  std::size_t size_;
  gpu::device_memory memory_;
};

}  // namespace poseidon::test
