// models/device/replica_base.hpp - what the replicas and the layers of every device know, whatever computes them.
#pragma once
#include "models/device/device.hpp"
#include "models/net/refusal.hpp"

#include <cstddef>
#include <string>

namespace poseidon {

struct replica_base {
  const net& graph;
  replica_options options;

  [[nodiscard]] bool by_factors(std::size_t layer) const {
    return layer < options.by_factors.size() && options.by_factors[layer];
  }
  [[nodiscard]] bool has_backward() const {
    return graph.phase == ::caffe::TRAIN || options.keep_all_diffs;
  }
};

/// One layer of a replica. `State` is the device's replica_base, which lives longer than the layer.
template <class State>
struct layer_base {
  State& state;
  const net_layer& layer;
  std::size_t index;  ///< the layer's place in the net; random numbers depend on it

  [[nodiscard]] bool in_place() const {
    return !layer.tops.empty() && !layer.bottoms.empty() && layer.tops[0] == layer.bottoms[0];
  }
  [[nodiscard]] bool training() const { return phase_of(state.graph, layer) == ::caffe::TRAIN; }
  /// Does backward() have to write the diff of bottom i?
  [[nodiscard]] bool wants_diff(std::size_t i) const {
    return state.has_backward() && i < layer.propagate_down.size() && layer.propagate_down[i];
  }
  /// Refuses a net that would need the gradient of bottom i, which holds `what`.
  void require_no_gradient(std::size_t i, const std::string& what) const {
    if (wants_diff(i)) refuse_gradient(layer, i, what);
  }
  /// Throws spec_error: `layer "x" (Type): text`, with its place in the file.
  [[noreturn]] void refuse(const std::string& text) const { refuse_layer(layer, text); }
};

/// A kernel without backward work: data layers, Accuracy, Silence in TEST.
class forward_only : public kernel {
 public:
  void backward(const pass&) override {}
};

}  // namespace poseidon
