// cpu/layers/sparse_convolution.hpp
//
// The backward pass of a convolution whose gradient is mostly zeros, which it neither reads nor
// multiplies.
//
// After max pooling: of a window's outputs only the maximum has a gradient, so with 2x2 windows
// three quarters of the convolution's top diff are zero. The kernel goes from the pooling's diff
// and its choice of maxima straight to the gradients of weights and bottom; the pooling's (and the
// ReLU's) own backward is part of it. After a ReLU: about half of the gradients are masked, in a
// trained net more.
//
// Nonzero gradients become lists of terms. For the weights, a channel's list adds patches of x
// while the channel's sums stay in registers; for the bottom, the list of a place adds rows of
// weights likewise. The order of all sums follows from values and shapes alone.
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

class sparse_backward {
 public:
  virtual ~sparse_backward() = default;
  virtual void backward(const pass& p) = 0;
  /// Are there enough zeros among the current gradients?
  [[nodiscard]] virtual bool worthwhile() const = 0;
};

/// After max pooling, always worthwhile. Null where it does not apply (groups, dilation, windows
/// that overlap so much that the diff is dense) or where tests want every diff. Otherwise marks the
/// layers that it stands for as backward_fused and shares their choices.
[[nodiscard]] std::unique_ptr<sparse_backward> make_pooled_backward(const layer_context& c,
                                                                    const convolution_shape& s);

/// After a ReLU in place. As above; the caller masks the diff itself when it is not worthwhile().
[[nodiscard]] std::unique_ptr<sparse_backward> make_relu_backward(const layer_context& c,
                                                                  const convolution_shape& s);

}  // namespace poseidon::cpu
