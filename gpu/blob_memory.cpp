#include "gpu/blob_memory.hpp"

#include "gpu/kernels/elementwise.hpp"
#include "gpu/residual.hpp"
#include "models/device/blob_needs.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

namespace poseidon::gpu {
namespace {

std::string amount(std::size_t bytes) {
  char text[32];
  const auto b = static_cast<double>(bytes);
  if (bytes >= std::size_t{1} << 30)
    std::snprintf(text, sizeof text, "%.1f GiB", b / (1 << 30));
  else
    std::snprintf(text, sizeof text, "%.1f MiB", b / (1 << 20));
  return text;
}

/// The needs of one blob, before it has memory.
struct placed_needs : blob_needs {
  bool lasting = false;  ///< the data is read after the pass, or written before it
  /// The blob whose data it has: a Split's bottom.
  std::optional<std::size_t> same_data;
  /// The blob whose diff it has: the top of a sum (gpu/residual.hpp).
  std::optional<std::size_t> same_diff;
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
    for (const net_layer& layer : net_.layers)
      if (is_source(layer))
        for (const std::size_t t : layer.tops) options_[t].lasting = true;
    find_splits();
    find_gradients_of_residuals();
  }

  void allocate() {
    const std::size_t blobs = net_.blobs.size();
    std::vector<planned_buffer> buffers(2 * blobs);
    std::vector<std::size_t> own(2 * blobs);  // floats
    for (std::size_t b = 0; b < blobs; ++b) {
      const placed_needs& w = options_[b];
      const std::size_t floats = floats_of(state_.blobs[b]);
      const bool all = state_.options.keep_all_diffs;
      if (!w.same_data) {
        if (w.lasting || all)
          own[2 * b] = floats;
        else
          buffers[2 * b] = {floats, w.data_uses};
      }
      if (w.has_diff && !w.same_diff) {
        if (!w.diff_written || all)
          own[2 * b + 1] = floats;
        else
          buffers[2 * b + 1] = {floats, w.diff_uses};
      }
    }
    const memory_plan plan = plan_memory(event_order(net_), buffers);
    float* const arena = take(plan.floats, own);
    float* next = arena + aligned(plan.floats);
    const auto place = [&](std::size_t i) -> values {
      const value_type type = type_of(state_.blobs[i / 2].order);
      if (own[i] != 0) return {std::exchange(next, next + aligned(own[i])), type};
      return {buffers[i].uses.empty() ? nullptr : arena + plan.offsets[i], type};
    };
    for (std::size_t b = 0; b < blobs; ++b) {
      state_.blobs[b].data = place(2 * b);
      state_.blobs[b].diff = place(2 * b + 1);
    }
    for (std::size_t b = 0; b < blobs; ++b)
      if (options_[b].same_data) state_.blobs[b].data = state_.blobs[source_of(b)].data;
    for (std::size_t b = 0; b < blobs; ++b)
      if (options_[b].same_diff) state_.blobs[b].diff = state_.blobs[*options_[b].same_diff].diff;
  }

 private:
  /// Pooling keeps what it chose.
  static backward_reads reads_of(const net_layer& l) {
    return {l.type != "Pooling", l.type != "Pooling"};
  }

  /// The memory for a blob's values, in floats.
  static std::size_t floats_of(const gpu_blob& b) { return (b.bytes() + 3) / 4; }

  /// Rounds up to the alignment that libraries prefer for vectors.
  static std::size_t aligned(std::size_t floats) { return (floats + 63) / 64 * 64; }

  [[nodiscard]] std::size_t source_of(std::size_t blob) const {
    while (options_[blob].same_data) blob = *options_[blob].same_data;
    return blob;
  }

  /// One piece of memory for the arena and everything of its own.
  float* take(std::size_t arena, const std::vector<std::size_t>& own) {
    std::size_t floats = aligned(arena), largest = 0;
    for (const std::size_t f : own) floats += aligned(f);
    for (std::size_t b = 0; b < net_.blobs.size(); ++b)
      if (state_.blobs[b].bytes() > state_.blobs[largest].bytes()) largest = b;
    const std::string of_blob = net_.blobs.empty()
                                    ? ""
                                    : ", the largest of which is \"" + net_.blobs[largest].name +
                                          "\" (" + to_string(net_.blobs[largest].shape) + ", " +
                                          amount(state_.blobs[largest].bytes()) + ")";
    state_.memory.push_back(claim(state_.compute, floats * sizeof(float),
                                  "the blobs of net \"" + net_.name + "\"" + of_blob,
                                  smaller_batch));
    return state_.memory.back().floats();
  }

  /// A use of a Split's top is a use of its bottom. From the net's end, for Splits of Splits.
  void find_splits() {
    if (state_.options.keep_all_diffs) return;
    for (std::size_t l = net_.layers.size(); l-- > 0;) {
      const net_layer& layer = net_.layers[l];
      if (layer.type != "Split") continue;
      placed_needs& bottom = options_[layer.bottoms[0]];
      for (const std::size_t t : layer.tops) {
        placed_needs& top = options_[t];
        if (writers_of(net_, t) > 1) continue;
        top.same_data = layer.bottoms[0];
        bottom.data_uses.insert(bottom.data_uses.end(), top.data_uses.begin(), top.data_uses.end());
        bottom.lasting |= top.lasting;
      }
    }
  }

  /// Adds the reads and writes of the sums at the ends of residual blocks (gpu/residual.hpp).
  void find_gradients_of_residuals() {
    for (std::size_t l = 0; l < net_.layers.size(); ++l)
      if (const auto& r = state_.residuals[l]; r && r->split)
        for (const std::size_t b : r->gradients) options_[b].diff_uses.push_back({l, true});
    for (std::size_t l = 0; l < net_.layers.size(); ++l) {
      const auto& r = state_.residuals[l];
      if (!r || !r->one_gradient) continue;
      placed_needs& top = options_[net_.layers[l].tops[0]];
      for (const std::size_t of : r->normalizing) top.diff_uses.push_back({of, true});
      for (const std::size_t b : r->split_tops) {
        options_[b].same_diff = net_.layers[l].tops[0];
        const auto& uses = options_[b].diff_uses;
        top.diff_uses.insert(top.diff_uses.end(), uses.begin(), uses.end());
      }
    }
  }

  replica_state& state_;
  const net& net_;
  std::vector<placed_needs> options_;
};

}  // namespace

error explained(const error& e, int device, std::size_t bytes, const std::string& what,
                const std::string& advice) {
  const auto has = properties(device);
  return error(e.kind(), e.code(),
               "GPU " + std::to_string(device) + " (" + has.name + "): " + amount(bytes) +
                   " are wanted for " + what + "; " + amount(has.free_bytes) + " of " +
                   amount(has.total_bytes) + " are free. " + advice);
}

device_memory claim(stream& s, std::size_t bytes, const std::string& what,
                    const std::string& advice) {
  try {
    device_memory memory(s.device(), bytes);
    clear(s, memory.bytes(), bytes);
    finish(s);
    return memory;
  } catch (const error& e) {
    if (e.kind() != error_kind::memory) throw;
    throw explained(e, s.device(), bytes, what, advice);
  }
}

void allocate_blobs(replica_state& state) {
  blob_planner(state).allocate();
  // A loss top's diff is its weight and stays so: no consumer of it writes there.
  for (const net_layer& l : state.graph.layers) {
    for (std::size_t t = 0; t < l.tops.size() && t < l.loss_weights.size(); ++t) {
      const gpu_blob& b = state.blobs[l.tops[t]];
      if (l.loss_weights[t] != 0 && b.diff != nullptr)
        fill(state.compute, b.values(), l.loss_weights[t], b.diff);
    }
  }
}

}  // namespace poseidon::gpu
