#include "gpu/layer.hpp"

#include "gpu/blob_memory.hpp"
#include "gpu/converted_blobs.hpp"
#include "gpu/shared_gradient.hpp"
#include "models/net/fusion.hpp"

namespace poseidon::gpu {

const gpu_blob& layer_context::blob(std::size_t b) const {
  const gpu_blob* own = converted == nullptr ? nullptr : converted->find(b);
  return own != nullptr ? *own : state.blobs[b];
}

channel_shape layer_context::channels_of(const shape& s) const {
  if (s.size() < 2) return {static_cast<std::size_t>(count(s)), 1, 1};
  const auto samples = static_cast<std::size_t>(s[0]), channels = static_cast<std::size_t>(s[1]),
             plane = static_cast<std::size_t>(count(s, 2, s.size()));
  if (channels_last(order())) return {samples * plane, channels, 1};
  return {samples, channels, plane};
}

float layer_context::take_relu(bool backward) const {
  const auto relu =
      state.options.keep_all_diffs ? std::nullopt : relu_in_place_after(state.graph, index);
  if (!relu) return 1;
  state.forward_done[relu->layer] = true;
  state.backward_done[relu->layer] = backward;
  return relu->slope;
}

const float* layer_context::parameter(std::size_t slot) const {
  return slot < layer.parameters.size() ? state.parameters[layer.parameters[slot]] : nullptr;
}

gradient_slot layer_context::gradient(std::size_t slot) const {
  if (slot >= layer.parameters.size() || !layer.learn.at(slot)) return {};
  const std::size_t p = layer.parameters[slot];
  if (state.gradients[p] == nullptr) return {};
  const auto values = static_cast<std::size_t>(count(state.graph.parameters[p].shape));
  const auto& shared = state.shared[p];
  if (shared == nullptr) return gradient_slot(state.gradients[p], values);
  const auto writers = gradient_writers(state.graph, p);
  const auto mine = std::find(writers.begin(), writers.end(), parameter_place{index, slot});
  if (mine == writers.end()) return {};
  return gradient_slot(shared->part(static_cast<std::size_t>(mine - writers.begin())), values,
                       shared);
}

float* layer_context::statistic(std::size_t slot) const {
  return slot < layer.parameters.size() ? state.gradients[layer.parameters[slot]] : nullptr;
}

device_memory layer_context::allocate(std::size_t bytes) const {
  return claim(state.compute, bytes, "layer \"" + layer.name + "\" (" + layer.type + ")",
               smaller_batch);
}

}  // namespace poseidon::gpu
