// gpu/traffic.hpp - the copies between host and device for one layer, and the events that order them.
#pragma once
#include "gpu/context.hpp"
#include "gpu/layer.hpp"

namespace poseidon::gpu {

/// The factors of one layer's weight gradient: copied right after its backward(), because their blobs' memory is reused
/// soon.
struct kept_factors {
  std::size_t u_values = 0, v_values = 0;
  device_memory on_device;  // u, then v
  host_values on_host;
};

/// The replica's work around one layer.
struct layer_traffic {
  std::vector<std::shared_ptr<device_parameter>> reads;
  std::vector<std::size_t> gradients;  ///< net parameters whose gradients it may write
  /// By gradient: is it complete after the backward() issued last? The stream writes it and bring_gradients() reads it;
  /// the contract of replica orders the two.
  std::vector<bool> complete;
  event made;  ///< the gradients are computed
  std::unique_ptr<kept_factors> factors;
  explicit layer_traffic(int device) : made(device) {}
};

/// A kernel with waits before the layer's own and events behind it. What the arguments refer to outlives it.
[[nodiscard]] std::unique_ptr<kernel> make_issuing(std::unique_ptr<kernel> layer,
                                                   layer_traffic& traffic, context& with,
                                                   const layer_context& of);

}  // namespace poseidon::gpu
