#include "models/net/backward_flags.hpp"

#include "models/net/layer_rules.hpp"
#include "models/net/net.hpp"

#include <algorithm>
#include <set>
#include <string>

namespace poseidon {

namespace {

bool any(const std::vector<bool>& flags) {
  return std::find(flags.begin(), flags.end(), true) != flags.end();
}

/// Upwards: a gradient has a use where something at or below the layer learns.
void mark_what_learns(net& n) {
  std::vector<bool> blob_learns(n.blobs.size(), false);
  for (auto& layer : n.layers) {
    layer.propagate_down.clear();
    layer.needs_backward = any(layer.learn);
    for (std::size_t i = 0; i < layer.bottoms.size(); ++i) {
      const bool learns = blob_learns[layer.bottoms[i]];
      layer.needs_backward = layer.needs_backward || learns;
      const bool told = layer.spec.propagate_down_size() > 0;
      layer.propagate_down.push_back(told ? layer.spec.propagate_down(static_cast<int>(i))
                                          : learns);
    }
    if (!layer.needs_backward) continue;
    for (const auto top : layer.tops) blob_learns[top] = true;
  }
}

/// Downwards: a gradient arrives where a loss lies above and no layer between withholds it. Blobs are
/// compared by name, as in Caffe, where all automatic tops share one name.
void keep_what_reaches_a_loss(net& n) {
  std::set<std::string> under_loss, cut_off;
  for (auto layer = n.layers.rbegin(); layer != n.layers.rend(); ++layer) {
    bool contributes = false, all_cut = true;
    for (std::size_t i = 0; i < layer->tops.size(); ++i) {
      const auto& name = n.blobs[layer->tops[i]].name;
      contributes = contributes || layer->loss_weights[i] != 0 || under_loss.count(name) != 0;
      all_cut = all_cut && cut_off.count(name) != 0;
    }
    if (layer->needs_backward && all_cut) {
      layer->needs_backward = false;
      layer->propagate_down.assign(layer->bottoms.size(), false);
    }
    if (!contributes) layer->needs_backward = false;
    for (std::size_t i = 0; i < layer->bottoms.size(); ++i) {
      const auto& name = n.blobs[layer->bottoms[i]].name;
      if (contributes)
        under_loss.insert(name);
      else
        layer->propagate_down[i] = false;
      if (!layer->propagate_down[i]) cut_off.insert(name);
    }
  }
}

}  // namespace

void set_backward_flags(net& n, bool force_backward) {
  mark_what_learns(n);
  keep_what_reaches_a_loss(n);
  if (!force_backward) return;
  for (auto& layer : n.layers) {
    layer.needs_backward = true;
    for (std::size_t i = 0; i < layer.bottoms.size(); ++i)
      layer.propagate_down[i] = layer.propagate_down[i] || takes_gradient(layer.type, i);
    layer.learn.assign(layer.learn.size(), true);
  }
}

}  // namespace poseidon
