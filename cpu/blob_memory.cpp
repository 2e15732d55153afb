#include "cpu/blob_memory.hpp"

#include "cpu/split.hpp"
#include "models/device/blob_needs.hpp"

#include <algorithm>
#include <utility>

namespace poseidon::cpu {
namespace {

/// The needs of one blob, before it has memory.
struct placed_needs : blob_needs {
  bool data_elsewhere = false, diff_elsewhere = false;  ///< it is another blob's
  bool fed = false;                                     ///< a data layer points it at its batch
  bool lasting = false;                                 ///< read after the pass
};

class blob_planner {
 public:
  explicit blob_planner(replica_state& state) : state_(state), net_(state.graph) {
    for (auto& needs :
         needs_of_blobs(net_, state.has_backward(), state.options.keep_all_diffs, reads_of)) {
      auto& option = options_.emplace_back();
      static_cast<blob_needs&>(option) = std::move(needs);
      option.lasting = option.output;
    }
    for (std::size_t l = 0; l < net_.layers.size(); ++l) {
      const net_layer& layer = net_.layers[l];
      if (is_source(layer)) mark_fed(layer);
      if (layer.type == "Pooling" && layer.needs_backward && state.has_backward())
        extend_to_convolution(l);
    }
    find_aliases();
  }

  void allocate() {
    std::vector<planned_buffer> buffers(2 * net_.blobs.size());
    for (std::size_t b = 0; b < net_.blobs.size(); ++b) {
      cpu_blob& blob = state_.blobs[b];
      placed_needs& w = options_[b];
      if (!w.data_elsewhere && !w.fed) {
        if (w.lasting || !may_move(blob))
          blob.own_data = buffer(blob.memory());
        else
          buffers[2 * b] = {blob.memory(), std::move(w.data_uses)};
      }
      if (w.has_diff && !w.diff_elsewhere) {
        if (!w.diff_written || !may_move(blob))
          blob.own_diff = buffer(blob.memory());
        else
          buffers[2 * b + 1] = {blob.memory(), std::move(w.diff_uses)};
      }
    }
    const memory_plan plan = plan_memory(event_order(net_), buffers);
    state_.arena = buffer(plan.floats);
    for (std::size_t b = 0; b < net_.blobs.size(); ++b) {
      cpu_blob& blob = state_.blobs[b];
      blob.home = place(blob.own_data, buffers[2 * b], plan.offsets[2 * b]);
      blob.data = blob.home;
      blob.diff = place(blob.own_diff, buffers[2 * b + 1], plan.offsets[2 * b + 1]);
    }
  }

 private:
  /// Pooling keeps what it chose, and no LRN needs its results.
  static backward_reads reads_of(const net_layer& l) {
    return {l.type != "Pooling", l.type != "Pooling" && l.type != "LRN"};
  }

  /// Padding has to stay zero, which others would not respect; and tests look at everything afterwards.
  [[nodiscard]] bool may_move(const cpu_blob& b) const {
    return !state_.options.keep_all_diffs && b.stored() == b.values();
  }

  float* place(buffer& own, const planned_buffer& planned, std::size_t offset) {
    if (own.size() != 0) return own.data();
    return planned.uses.empty() ? nullptr : state_.arena.data() + offset;
  }

  /// Only where nothing works in place on what was fed.
  void mark_fed(const net_layer& source) {
    for (const std::size_t t : source.tops) {
      std::size_t writers = 0;
      for (const net_layer& l : net_.layers)
        writers += static_cast<std::size_t>(std::count(l.tops.begin(), l.tops.end(), t));
      options_[t].fed = writers == 1 && !state_.options.keep_all_diffs;
      options_[t].lasting = true;
    }
  }

  /// The backward pass of a convolution may start from the pooling behind it, see sparse_convolution.hpp.
  void extend_to_convolution(std::size_t pooling) {
    const net_layer& layer = net_.layers[pooling];
    for (std::size_t l = 0; l < pooling; ++l) {
      const auto& tops = net_.layers[l].tops;
      if (std::find(tops.begin(), tops.end(), layer.bottoms[0]) == tops.end()) continue;
      for (const std::size_t t : layer.tops) {
        options_[t].data_uses.push_back({l, true});
        options_[t].diff_uses.push_back({l, true});
      }
    }
  }

  /// What uses another name of a blob uses the blob. Backwards, for Splits of Splits.
  void find_aliases() {
    for (std::size_t l = net_.layers.size(); l-- > 0;) {
      const net_layer& layer = net_.layers[l];
      if (layer.type == "Eltwise") share_diff_of_sum(l);
      if (layer.type != "Split") continue;
      const split_sharing s = sharing_of(state_, l);
      placed_needs& bottom = options_[layer.bottoms[0]];
      for (std::size_t t = 0; t < layer.tops.size(); ++t) {
        placed_needs& top = options_[layer.tops[t]];
        if (s.data[t] && !state_.options.keep_all_diffs) {
          top.data_elsewhere = true;
          append(bottom.data_uses, top.data_uses);
          bottom.lasting |= top.lasting;
        }
        if (s.diff == t) {
          top.diff_elsewhere = true;
          append(bottom.diff_uses, top.diff_uses);
        }
      }
    }
  }

  /// The gradient of a summand is that of the sum. One of them may have the same memory: nothing reads the sum's gradient after the layer
  /// has copied it for the others.
  void share_diff_of_sum(std::size_t l) {
    const net_layer& layer = net_.layers[l];
    const auto& p = layer.spec.eltwise_param();
    const std::size_t top = layer.tops[0];
    const bool is_sum = p.operation() == ::caffe::EltwiseParameter::SUM;
    const bool in_place =
        std::find(layer.bottoms.begin(), layer.bottoms.end(), top) != layer.bottoms.end();
    if (!is_sum || in_place || state_.options.keep_all_diffs || !options_[top].diff_written) return;
    for (std::size_t b = 0; b < layer.bottoms.size(); ++b) {
      const std::size_t bottom = layer.bottoms[b];
      const bool whole = p.coeff_size() == 0 || p.coeff(static_cast<int>(b)) == 1.0f;
      if (!whole || !layer.propagate_down[b] || !options_[bottom].has_diff ||
          state_.blobs[bottom].form != state_.blobs[top].form)
        continue;
      state_.has_diff_of_top[l] = b;
      options_[top].diff_elsewhere = true;
      append(options_[bottom].diff_uses, options_[top].diff_uses);
      return;
    }
  }

  static void append(std::vector<net_event>& to, const std::vector<net_event>& more) {
    to.insert(to.end(), more.begin(), more.end());
  }

  replica_state& state_;
  const net& net_;
  std::vector<placed_needs> options_;
};

}  // namespace

void allocate_blobs(replica_state& state) {
  blob_planner(state).allocate();
  // A loss top's diff is its weight and stays so: no consumer of it writes there.
  for (const net_layer& l : state.graph.layers) {
    for (std::size_t t = 0; t < l.tops.size() && t < l.loss_weights.size(); ++t) {
      cpu_blob& b = state.blobs[l.tops[t]];
      if (l.loss_weights[t] != 0 && b.diff != nullptr)
        std::fill_n(b.diff, b.stored(), l.loss_weights[t]);
    }
  }
}

}  // namespace poseidon::cpu
