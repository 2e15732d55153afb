// models/device/resizing_kernel.hpp
//
// Layers behind a Filter: the batch that reaches them differs from pass to pass. Such a layer has its kernel made again
// when its bottoms' shapes have changed, with the tops' shapes that the layer's rule then gives. The memory of its
// blobs is that of the whole batch, which is the most there can be.
#pragma once
#include "models/device/device.hpp"

#include <memory>
#include <vector>

namespace poseidon {

/// Hands the layer's passes to a kernel for the present shapes. A pass without a single sample is not computed: its
/// tops (losses) are zero, and so are its gradients.
class resizing_kernel : public kernel {
 public:
  void forward(const pass& p) final;
  void backward(const pass& p) final;

 protected:
  /// `extents`: the shapes by net blob, in this pass; `first`: a kernel for them as they are now.
  resizing_kernel(const net_layer& layer, std::vector<shape>& extents,
                  std::unique_ptr<kernel> first);

  /// Replaces the kernel by one for the present shapes.
  virtual void make_again(std::unique_ptr<kernel>& inner) = 0;
  virtual void clear_tops() = 0;
  /// Clears the diffs of the bottoms and the gradients that backward() would write.
  virtual void clear_gradients() = 0;

  [[nodiscard]] bool is_empty() const { return is_empty_; }
  [[nodiscard]] kernel& inner() { return *inner_; }

 private:
  [[nodiscard]] std::vector<shape> bottom_shapes() const;
  void resize(std::vector<shape> bottoms);

  const net_layer& layer_;
  std::vector<shape>& extents_;
  std::vector<shape> made_for_;
  std::unique_ptr<kernel> inner_;
  bool is_empty_ = false;
};

/// Errors   spec_error naming the layer: an HDF5Output, whose file has rows of one batch.
void require_resizable(const net_layer& layer);

}  // namespace poseidon
