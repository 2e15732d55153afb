#include "actors/training/debug_info.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace poseidon {

namespace {

bool learns(const net_layer& layer) {
  return layer.needs_backward &&
         std::find(layer.learn.begin(), layer.learn.end(), true) != layer.learn.end();
}

double sum_of_magnitudes(std::span<const float> values) {
  double sum = 0;
  for (const float v : values) sum += std::abs(double{v});
  return sum;
}

double sum_of_squares(std::span<const float> values) {
  double sum = 0;
  for (const float v : values) sum += double{v} * double{v};
  return sum;
}

/// As Caffe calls it: its name, or its place.
std::string parameter_name(const net_layer& layer, std::size_t slot) {
  const auto i = static_cast<int>(slot);
  const bool named = i < layer.spec.param_size() && !layer.spec.param(i).name().empty();
  return named ? layer.spec.param(i).name() : std::to_string(slot);
}

}  // namespace

debug_info::debug_info(debug_info_setup setup) : setup_(std::move(setup)) {
  for (const auto& layer : setup_.graph->layers) learners_ += learns(layer) ? 1 : 0;
}

bool debug_info::shown(std::uint64_t clock) const {
  return setup_.display > 0 && clock % setup_.display == 0;
}

std::span<const float> debug_info::data(std::size_t parameter) const {
  return {setup_.values[parameter]->values.load(std::memory_order_acquire),
          static_cast<std::size_t>(count(setup_.graph->parameters[parameter].shape))};
}

void debug_info::say(const char* direction, std::size_t layer, const std::string& what,
                     std::span<const float> values) {
  std::ostringstream line;
  const auto size = static_cast<double>(std::max<std::size_t>(values.size(), 1));
  line << "    [" << direction << "] Layer " << setup_.graph->layers[layer].name << ", " << what
       << ": " << sum_of_magnitudes(values) / size;
  setup_.to->note(line.str());
}

void debug_info::forward(std::size_t layer, std::uint64_t clock) {
  const std::lock_guard lock(mutex_);
  if (!shown(clock)) return;
  const auto& l = setup_.graph->layers[layer];
  for (const auto top : l.tops) {
    const auto& blob = setup_.graph->blobs[top];
    scratch_.resize(static_cast<std::size_t>(count(blob.shape)));
    setup_.copy->read_data(top, scratch_);
    say("Forward", layer, "top blob " + blob.name + " data", scratch_);
  }
  for (std::size_t slot = 0; slot < l.parameters.size(); ++slot)
    say("Forward", layer, "param blob " + parameter_name(l, slot) + " data",
        data(l.parameters[slot]));
}

void debug_info::backward(std::size_t layer, std::uint64_t clock) {
  const std::lock_guard lock(mutex_);
  const auto& l = setup_.graph->layers[layer];
  if (!shown(clock) || !l.needs_backward) return;
  for (std::size_t b = 0; b < l.bottoms.size(); ++b) {
    if (!l.propagate_down[b]) continue;
    const auto& blob = setup_.graph->blobs[l.bottoms[b]];
    scratch_.resize(static_cast<std::size_t>(count(blob.shape)));
    setup_.copy->read_diff(l.bottoms[b], scratch_);
    say("Backward", layer, "bottom blob " + blob.name + " diff", scratch_);
  }
  for (std::size_t slot = 0; slot < l.parameters.size(); ++slot)
    if (l.learn[slot])
      say("Backward", layer, "param blob " + parameter_name(l, slot) + " diff",
          setup_.copy->gradient(l.parameters[slot]));
  if (!learns(l) || ++learned_ < learners_) return;
  learned_ = 0;
  say_norms();
}

void debug_info::say_norms() {
  double data_l1 = 0, data_l2 = 0, diff_l1 = 0, diff_l2 = 0;
  for (std::size_t p = 0; p < setup_.graph->parameters.size(); ++p) {
    const auto diff = setup_.copy->gradient(p);
    data_l1 += sum_of_magnitudes(data(p)), data_l2 += sum_of_squares(data(p));
    diff_l1 += sum_of_magnitudes(diff), diff_l2 += sum_of_squares(diff);
  }
  std::ostringstream line;
  line << "    [Backward] All net params (data, diff): L1 norm = (" << data_l1 << ", " << diff_l1
       << "); L2 norm = (" << std::sqrt(data_l2) << ", " << std::sqrt(diff_l2) << ")";
  setup_.to->note(line.str());
}

}  // namespace poseidon
