#include "gpu/normalization.hpp"

#include "models/net/fusion.hpp"
#include "models/solver/solver_rule.hpp"

namespace poseidon::gpu {

std::optional<sharing_scale> scale_to_share_with(const replica_state& state,
                                                 std::size_t batch_norm) {
  const net& n = state.graph;
  const net_layer& l = n.layers[batch_norm];
  if (state.options.keep_all_diffs) return std::nullopt;
  const auto next = scale_in_place_after(n, batch_norm);
  if (!next || state.orders[*next] != state.orders[batch_norm]) return std::nullopt;
  // With other layers between the two, a bottom that is not the top may be gone by the time that Scale reads it.
  if (l.tops[0] != l.bottoms[0] && *next != batch_norm + 1) return std::nullopt;
  const bool goes_back = state.has_backward() && n.layers[*next].needs_backward;
  // fixed statistics have another gradient
  if (goes_back && !uses_batch_statistics(n, l)) return std::nullopt;
  return sharing_scale{*next, goes_back};
}

void keep_inputs_of_normalizations(replica_state& state) {
  const net& n = state.graph;
  const std::vector<bool> resized = resized_blobs(n);
  for (std::size_t l = 0; l < n.layers.size(); ++l) {
    const layer_context c{state, n.layers[l], l};
    if (c.layer.type != "BatchNorm" || !c.in_place()) continue;
    const auto scale = scale_to_share_with(state, l);
    if (!scale || !scale->goes_back) continue;
    const std::size_t b = c.layer.bottoms[0];
    const auto from = producer(n, b, l);
    if (!from || resized[b] || consumer(n, b, *from) != l) continue;
    const net_layer& convolution = n.layers[*from];
    const gpu_blob& blob = state.blobs[b];
    // Layers that have the blob in another layout have copies of it (gpu/converted_blobs.hpp).
    if (convolution.type != "Convolution" || convolution.tops.size() != 1 ||
        state.orders[*from] != blob.order || c.order() != blob.order)
      continue;
    state.memory.push_back(c.allocate(blob.bytes()));
    gpu_blob beside = blob;
    beside.data = values_in(state.memory.back(), blob);
    state.first_tops[*from] = state.first_bottoms[l] = beside;
  }
}

}  // namespace poseidon::gpu
