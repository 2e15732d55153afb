// gpu/converted_blobs.hpp - what a layer gets of blobs that the net has in another layout than its kernels take: copies,
// made before and after each of its passes. A few layers at the borders need any: the first convolution, of the
// pictures, and the first InnerProduct; with bfloat16 inside also what works on the result of a last pooling.
#pragma once
#include "gpu/layer.hpp"

#include <map>
#include <memory>

namespace poseidon::gpu {

/// The copies that one layer works on, in device memory of their own, for they outlive the pass that shares memory.
class converted_blobs {
 public:
  /// Of those blobs of the layer whose layout is not c.order(). `c` has none yet.
  /// Errors   gpu::error (memory) as layer_context::allocate().
  explicit converted_blobs(const layer_context& c);
  converted_blobs(const converted_blobs&) = delete;
  converted_blobs& operator=(const converted_blobs&) = delete;

  [[nodiscard]] bool empty() const { return blobs_.empty(); }
  /// Null where the layer takes the net's own. The same for this object's life.
  [[nodiscard]] const gpu_blob* find(std::size_t blob) const;

 private:
  std::map<std::size_t, gpu_blob> blobs_;
  std::vector<device_memory> memory_;
};

/// `layer`, with conversions before and behind its passes. `c`, with c.converted, outlives it.
[[nodiscard]] std::unique_ptr<kernel> make_converting(const layer_context& c,
                                                      std::unique_ptr<kernel> layer);

}  // namespace poseidon::gpu
