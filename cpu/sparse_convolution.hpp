// cpu/sparse_convolution.hpp
//
// The backward pass of a convolution that max pooling follows. Of a pooling window's outputs only the maximum
// has a gradient, so with 2x2 windows three quarters of the convolution's top diff are zero, and with a ReLU
// more. This kernel goes from the pooling's diff and its choice of maxima straight to the gradients of the
// weights and of the bottom, and neither reads nor writes the zeros: the pooling's (and the ReLU's) own
// backward is part of it.
#pragma once
#include "cpu/convolution_shape.hpp"
#include "cpu/layer.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace poseidon::cpu {

/// Where each maximum of a blocked max pooling was, see max_pool.hpp.
struct pooled_choice {
  std::vector<std::uint8_t> at;
};

/// Null where it does not apply (groups, dilation, no pooling that follows, windows that overlap so much that
/// the diff is dense) or where tests want every diff. Otherwise marks the layers that it stands for as
/// backward_fused and shares their choices.
[[nodiscard]] std::unique_ptr<kernel> make_sparse_backward(const layer_context& c,
                                                           const convolution_shape& s);

}  // namespace poseidon::cpu
