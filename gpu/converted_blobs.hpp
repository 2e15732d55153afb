// gpu/converted_blobs.hpp - copies of blobs for a layer whose kernels take another layout than the net has, made before
// and after each of its passes. Few layers need them: the first convolution (its pictures), the first InnerProduct,
// and with bfloat16 inside the layer behind the last pooling.
#pragma once
#include "gpu/layer.hpp"

#include <map>
#include <memory>

namespace poseidon::gpu {

/// The copies that one layer works on. They have device memory of their own, because they outlive a pass.
class converted_blobs {
 public:
  /// Copies the blobs of the layer whose layout is not c.order(). `c` has no converted blobs yet.
  /// Errors   gpu::error (memory) as layer_context::allocate().
  explicit converted_blobs(const layer_context& c);
  converted_blobs(const converted_blobs&) = delete;
  converted_blobs& operator=(const converted_blobs&) = delete;

  [[nodiscard]] bool empty() const { return blobs_.empty(); }
  /// Null where the layer takes the net's own blob. The answer does not change.
  [[nodiscard]] const gpu_blob* find(std::size_t blob) const;

 private:
  std::map<std::size_t, gpu_blob> blobs_;
  std::vector<device_memory> memory_;
};

/// `layer`, with conversions before and after its passes. `c`, with c.converted, outlives it.
[[nodiscard]] std::unique_ptr<kernel> make_converting(const layer_context& c,
                                                      std::unique_ptr<kernel> layer);

}  // namespace poseidon::gpu
