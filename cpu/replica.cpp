#include "cpu/replica.hpp"

#include "cpu/blob_memory.hpp"
#include "cpu/resizing.hpp"
#include "cpu/solver_update.hpp"
#include "models/net/fusion.hpp"
#include "models/net/joined_axis.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace poseidon::cpu {
namespace {

class cpu_replica final : public replica {
 public:
  cpu_replica(const net& n, std::span<const parameter_values* const> parameters,
              replica_options options, cpu_math math)
      : state_{{n, std::move(options)}, math, {parameters.begin(), parameters.end()}} {
    state_.blobs.resize(n.blobs.size());
    for (const net_blob& b : n.blobs) state_.extents.push_back(b.shape);
    for (std::size_t b = 0; b < n.blobs.size(); ++b) state_.blobs[b].extents = &state_.extents[b];
    const std::vector<bool> resized = resized_blobs(n);
    choose_forms(resized);
    {
      const memory_for use("the blobs of net", n.name);
      allocate_blobs(state_);
    }
    if (state_.has_backward()) {
      for (const net_parameter& p : n.parameters) {
        const memory_for use("the gradient of parameter", p.name);
        state_.gradients.emplace_back(
            state_.by_factors(p.layer) ? 0 : static_cast<std::size_t>(count(p.shape)));
      }
      state_.shared.resize(n.parameters.size());
    }
    for (std::size_t i = 0; i < n.layers.size(); ++i) {
      const layer_context c{state_, n.layers[i], i};
      const auto& bottoms = n.layers[i].bottoms;
      const bool resizes =
          std::any_of(bottoms.begin(), bottoms.end(), [&](std::size_t b) { return resized[b]; });
      const memory_for use("layer", n.layers[i].name);
      kernels_.push_back(with_room_for_code(
          [&] { return resizes ? make_resizing(c) : find_layer_type(n.layers[i].type)->make(c); }));
    }
    const memory_for use("oneDNN's scratch memory of net", n.name);
    state_.dnnl.allocate();
  }

  kernel& at(std::size_t layer) override { return *kernels_.at(layer); }

  std::span<float> gradient(std::size_t parameter) override {
    if (state_.gradients.empty()) return {};
    buffer& g = state_.gradients.at(parameter);
    return {g.data(), g.size()};
  }

  reorder_count reorders() const override {
    auto sum = state_.dnnl.reorders();
    for (const auto& b : state_.blobs) {
      sum.copies += b.conversions;
      sum.bytes += b.conversions * b.values() * sizeof(float);
    }
    return sum;
  }
  shape extents(std::size_t blob) const override { return state_.extents.at(blob); }

  void read_data(std::size_t blob, std::span<float> to) const override {
    const cpu_blob& b = checked(blob, to.size());
    relayout(*b.extents, b.form, b.data, layout::plain, to.data());
    std::fill(to.begin() + static_cast<std::ptrdiff_t>(b.values()), to.end(), 0.0f);
  }
  void write_data(std::size_t blob, std::span<const float> from) override {
    cpu_blob& b = checked(blob, from.size());
    if (b.home == nullptr && b.data == nullptr) b.take_own_data();  // a data layer's, never fed
    if (b.home != nullptr) b.data = b.home;
    relayout(*b.extents, layout::plain, from.data(), b.form, b.data);
  }
  void read_diff(std::size_t blob, std::span<float> to) const override {
    const cpu_blob& b = checked_diff(blob, to.size());
    relayout(*b.extents, b.form, b.diff, layout::plain, to.data());
  }
  void write_diff(std::size_t blob, std::span<const float> from) override {
    const cpu_blob& b = checked_diff(blob, from.size());
    relayout(*b.extents, layout::plain, from.data(), b.form, b.diff);
  }

  std::optional<std::string> first_nonfinite() const override {
    for (const net_layer& l : state_.graph.layers) {
      for (const std::size_t p : l.parameters) {
        const float* w = state_.parameters[p]->values.load(std::memory_order_acquire);
        const auto size = static_cast<std::size_t>(count(state_.graph.parameters[p].shape));
        if (w != nullptr && !all_finite({w, size})) return l.name;
      }
      for (const std::size_t t : l.tops) {
        const cpu_blob& b = state_.blobs[t];
        if (b.data != nullptr && !holds_finite(b)) return l.name;
      }
    }
    return std::nullopt;
  }

 private:
  /// Each blob's layout: its producer's habit, except that an in-place layer of habit plain keeps
  /// it plain.
  void choose_forms(const std::vector<bool>& resized) {
    const net& n = state_.graph;
    std::vector<bool> stays_plain = resized;
    for (const net_layer& l : n.layers) {
      const layer_type* type = find_layer_type(l.type);
      if (type == nullptr) {
        layer_context{state_, l, 0}.refuse("the CPU has no kernel for this type. It has " +
                                           known_layer_types() + ".");
      }
      if (habit_of(l) != layout_habit::plain) continue;
      for (const std::size_t t : l.tops) stays_plain[t] = true;
    }
    for (const net_layer& l : n.layers) {
      const layout_habit habit = habit_of(l);
      if (habit == layout_habit::plain || l.bottoms.empty()) continue;
      const layout form = habit == layout_habit::chooses ? choose_layouts(n, l, state_.math).out
                          : habit == layout_habit::joins ? form_without_cut_blocks(l)
                                                         : state_.blobs[l.bottoms[0]].form;
      for (const std::size_t t : l.tops) {
        const bool in_place = std::find(l.bottoms.begin(), l.bottoms.end(), t) != l.bottoms.end();
        if (!stays_plain[t] && !in_place && n.blobs[t].shape.size() == 4) {
          state_.blobs[t].form = form_of_blob(form, n.blobs[t].shape);
        }
      }
    }
  }

  [[nodiscard]] layout_habit habit_of(const net_layer& l) const {
    const layout_habit habit = find_layer_type(l.type)->habit;
    if (habit == layout_habit::floats)
      return state_.math == cpu_math::fp32 ? layout_habit::follows : layout_habit::plain;
    if (habit != layout_habit::channels) return habit;
    return scales_channels(state_.graph, l) ? layout_habit::follows : layout_habit::plain;
  }

  [[nodiscard]] static bool holds_finite(const cpu_blob& b) {
    if (!is_bf16(b.form)) return all_finite({b.data, b.stored()});
    std::vector<float> wide(b.stored());
    widen(as<bfloat16>(b.data), wide.size(), wide.data());
    return all_finite(wide);
  }

  /// Pixels only with whole blocks of channels: else kernels would have to stop within one.
  [[nodiscard]] static layout form_of_blob(layout form, const shape& s) {
    const auto block = static_cast<std::int64_t>(block_of(form));
    return form == layout::pixels_bf16 && s[1] % block != 0 ? layout::c16_bf16 : form;
  }

  /// The first blocked form among a Concat's or Slice's bottoms, if all parts are whole blocks of
  /// channels: then a part's values lie in one piece, as they do in the plain form.
  [[nodiscard]] layout form_without_cut_blocks(const net_layer& l) const {
    const net& n = state_.graph;
    const bool slice = l.type == "Slice";
    if (n.blobs[l.bottoms[0]].shape.size() != 4 || joined_axis_of(n, l) != 1) return layout::plain;
    for (const std::size_t b : l.bottoms) {
      const auto block = static_cast<std::int64_t>(block_of(state_.blobs[b].form));
      if (block == 1) continue;
      const auto& parts = slice ? l.tops : l.bottoms;
      const bool whole = std::all_of(parts.begin(), parts.end(), [&](std::size_t p) {
        return n.blobs[p].shape[1] % block == 0;
      });
      return whole ? state_.blobs[b].form : layout::plain;
    }
    return layout::plain;
  }

  [[nodiscard]] const cpu_blob& checked(std::size_t blob, std::size_t size) const {
    const cpu_blob& b = state_.blobs.at(blob);
    const auto whole = static_cast<std::size_t>(count(state_.graph.blobs[blob].shape));
    if (size != whole) {
      throw std::invalid_argument("blob \"" + state_.graph.blobs[blob].name + "\" holds " +
                                  std::to_string(whole) + " values, not " + std::to_string(size));
    }
    return b;
  }
  [[nodiscard]] cpu_blob& checked(std::size_t blob, std::size_t size) {
    return const_cast<cpu_blob&>(std::as_const(*this).checked(blob, size));
  }
  [[nodiscard]] const cpu_blob& checked_diff(std::size_t blob, std::size_t size) const {
    const cpu_blob& b = checked(blob, size);
    if (b.diff == nullptr) {
      throw std::invalid_argument(
          "blob \"" + state_.graph.blobs[blob].name +
          "\" has no diff: no layer needs it (replica_options::keep_all_diffs)");
    }
    return b;
  }

  replica_state state_;
  std::vector<std::unique_ptr<kernel>> kernels_;
};

}  // namespace

parameter_reader layer_context::parameter(std::size_t slot) const {
  if (slot >= layer.parameters.size()) return {};
  return parameter_reader(state.parameters[layer.parameters[slot]]);
}

gradient_slot layer_context::gradient(std::size_t slot) const {
  if (!state.has_backward() || slot >= layer.parameters.size() || !layer.learn.at(slot) ||
      state.by_factors(index))
    return {};
  const std::size_t p = layer.parameters[slot];
  const std::span<float> total{state.gradients[p].data(), state.gradients[p].size()};
  const auto writers = gradient_writers(state.graph, p);
  if (writers.size() < 2) return gradient_slot(total);
  const auto mine = std::find(writers.begin(), writers.end(), parameter_place{index, slot});
  auto& shared = state.shared.at(p);
  if (shared == nullptr) shared = std::make_shared<shared_gradient>(total, writers.size());
  const auto place = mine == writers.end() ? 0 : mine - writers.begin();
  return gradient_slot(shared->part(static_cast<std::size_t>(place)), shared);
}

std::span<float> layer_context::statistic(std::size_t slot) const {
  if (state.gradients.empty() || slot >= layer.parameters.size()) return {};
  buffer& b = state.gradients[layer.parameters[slot]];
  return {b.data(), b.size()};
}

std::unique_ptr<replica> compile(const net& n, std::span<const parameter_values* const> parameters,
                                 replica_options options, cpu_math math) {
  return std::make_unique<cpu_replica>(n, parameters, std::move(options), math);
}

}  // namespace poseidon::cpu
