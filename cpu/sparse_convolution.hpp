// cpu/sparse_convolution.hpp
#pragma once
#include "cpu/convolution_shape.hpp"
#include "cpu/layer.hpp"

#include <cstdint>
#include <vector>

namespace poseidon::cpu {

/// Where each maximum of a blocked max pooling was, see max_pool.hpp.
struct pooled_choice {
  std::vector<std::uint8_t> at;
};

[[nodiscard]] inline std::unique_ptr<kernel> make_sparse_backward(const layer_context&,
                                                                  const convolution_shape&) {
  return nullptr;
}

}  // namespace poseidon::cpu
