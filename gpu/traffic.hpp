// gpu/traffic.hpp - what travels between host and device for one layer, and the marks in streams that say when.
#pragma once
#include "gpu/context.hpp"
#include "gpu/layer.hpp"

namespace poseidon::gpu {

/// The factors of one layer's weight gradient: kept apart right after its backward(), because their blobs' memory is
/// soon another's.
struct kept_factors {
  std::size_t u_values = 0, v_values = 0;
  device_memory on_device;  // u, then v
  host_values on_host;
};

/// One layer with what the replica does around it.
struct layer_traffic {
  std::vector<std::shared_ptr<device_parameter>> reads;
  std::vector<std::size_t> gradients;  ///< net parameters of which it may write one
  /// Of those, complete with the backward() issued last. Written by the stream, read by bring_gradients(), which
  /// contract and messages put one after the other.
  std::vector<bool> complete;
  event made;  ///< its gradients
  std::unique_ptr<kept_factors> factors;
  explicit layer_traffic(int device) : made(device) {}
};

/// A kernel that puts waits before the layer's own and marks behind it. What the arguments refer to outlives it.
[[nodiscard]] std::unique_ptr<kernel> make_issuing(std::unique_ptr<kernel> layer,
                                                   layer_traffic& traffic, context& with,
                                                   const layer_context& of);

}  // namespace poseidon::gpu
