#include "models/device/blob_needs.hpp"

namespace poseidon {

namespace {

void add_uses(std::vector<blob_needs>& needs, const net& n, std::size_t l, bool backward,
              const backward_reads& reads) {
  const net_layer& layer = n.layers[l];
  for (const auto* list : {&layer.bottoms, &layer.tops}) {
    const bool read = list == &layer.bottoms ? reads.bottoms : reads.tops;
    for (const std::size_t b : *list) {
      needs[b].data_uses.push_back({l, false});
      if (backward && read && runs_backward(n, layer)) needs[b].data_uses.push_back({l, true});
      if (backward && layer.needs_backward) needs[b].diff_uses.push_back({l, true});
    }
  }
}

}  // namespace

std::vector<blob_needs> needs_of_blobs(const net& n, bool backward, bool all_diffs,
                                       backward_reads (*reads)(const net_layer&)) {
  std::vector<blob_needs> needs(n.blobs.size());
  for (std::size_t l = 0; l < n.layers.size(); ++l) {
    const net_layer& layer = n.layers[l];
    add_uses(needs, n, l, backward, reads(layer));
    for (std::size_t i = 0; i < layer.bottoms.size() && i < layer.propagate_down.size(); ++i) {
      auto& bottom = needs[layer.bottoms[i]];
      if (layer.propagate_down[i] && backward) bottom.has_diff = bottom.diff_written = true;
    }
    for (const std::size_t t : layer.tops)
      if ((backward && layer.needs_backward) || all_diffs) needs[t].has_diff = true;
    for (std::size_t t = 0; t < layer.tops.size() && t < layer.loss_weights.size(); ++t)
      if (layer.loss_weights[t] != 0) needs[layer.tops[t]].diff_written = false;
  }
  for (std::size_t b = 0; b < needs.size(); ++b) {
    const auto last = producer(n, b, n.layers.size());
    needs[b].output = last && !consumer(n, b, *last);
  }
  return needs;
}

}  // namespace poseidon
