// gpu/shared_gradient.hpp - the gradient of one parameter that several layers share.
#pragma once
#include "gpu/runtime/runtime.hpp"

#include <vector>

namespace poseidon::gpu {

/// Each layer writes memory of its own. When the last layer of a pass has been enqueued, the parts are added from the
/// net's last layer to its first, as in Caffe: parallel branches may run in any order, the sum has one.
class shared_gradient {
 public:
  /// `parts`: device memory by layer, counted from the net's end; the sum goes to the first.
  shared_gradient(stream& compute, std::vector<float*> parts, std::size_t values)
      : compute_(compute), parts_(std::move(parts)), values_(values) {}
  [[nodiscard]] float* part(std::size_t i) const { return parts_[i]; }
  /// One layer's part of this pass is enqueued.
  void written();
  /// Is this pass's sum enqueued?
  [[nodiscard]] bool complete() const { return written_ == 0; }

 private:
  stream& compute_;
  std::vector<float*> parts_;
  std::size_t values_;
  std::size_t written_ = 0;
};

}  // namespace poseidon::gpu
