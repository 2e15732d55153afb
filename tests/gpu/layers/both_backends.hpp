// tests/gpu/layers/both_backends.hpp
//
// One net on the CPU and on a GPU: the same inputs and parameters go in, and what every layer makes of them has to
// agree. The GPU is the simulated one (make_gpu.cpp), or that of a plug-in (tests/gpu/plugin).
#pragma once
#include "models/device/device_plugin.hpp"
#include "tests/cpu/hand_net.hpp"
#include "tests/gpu/layers/behind_convolutions.hpp"

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace poseidon::test {

[[nodiscard]] std::shared_ptr<device> make_gpu(const plugin_choice& choice);

/// Every test holds for both.
inline constexpr device_layout both_layouts[] = {device_layout::nchw, device_layout::nhwc};

inline plugin_choice strict_choice(device_layout layout) {
  plugin_choice choice;
  choice.ordinals = {0};
  choice.math = device_math::fp32;
  choice.deterministic = true;
  choice.layout = layout;
  return choice;
}
/// GPU 0 with strict products, so that only the order of sums differs.
[[nodiscard]] inline std::shared_ptr<device> strict_gpu(device_layout layout) {
  return make_gpu(strict_choice(layout));
}

/// GPU 0 with bfloat16 inside its nets.
[[nodiscard]] inline std::shared_ptr<device> bf16_gpu() {
  plugin_choice choice = strict_choice(device_layout::nhwc);
  choice.math = device_math::bf16;
  return make_gpu(choice);
}

/// Sums in other orders, and functions of another library: some of the last bits of a float.
inline constexpr double same_numbers = 2e-5;

/// What becomes of values on their way through bfloat16, as a part of their length; with what a maximum or a ReLU makes
/// of those that it takes for another's.
inline constexpr double rounded_numbers = 0.25;
/// Labels 0, 1, ... below `classes`, all of them sooner or later.
inline std::vector<float> labels(std::size_t size, std::size_t classes) {
  std::vector<float> v(size);
  for (std::size_t i = 0; i < size; ++i) v[i] = static_cast<float>(i * 7 % classes);
  return v;
}

using named_values = std::map<std::string, std::vector<float>>;

using comparison =
    std::function<void(const std::vector<float>& ours, const std::vector<float>& wanted)>;

/// Runs both, the GPU as `with` has it, forward and backward, from `inputs` (noise where an Input is not named) and from noise in the diffs of
/// the net's outputs that are no losses. Checks the data of every blob, the diffs that layers have to write, and every
/// gradient. Both keep all diffs. `prepare` may change the parameters, which are noise, of either.
inline void check_both_on(const std::shared_ptr<device>& with, const comparison& agree,
                          const net& n, const named_values& inputs,
                          const std::function<void(running_net&)>& prepare) {
  CAPTURE(with->describe());
  const replica_options keep{1, true};
  running_net cpu(n, keep), gpu(n, keep, with);
  if (prepare) prepare(cpu), prepare(gpu);
  std::uint32_t seed = 0;
  for (const net_layer& l : n.layers) {
    if (!is_source(l)) continue;
    for (const std::size_t t : l.tops) {
      const std::string& name = n.blobs[t].name;
      const auto given = inputs.find(name);
      const auto values = given != inputs.end() ? given->second : noise(cpu.size(t), ++seed);
      cpu.set(name, values);
      gpu.set(name, values);
    }
  }
  cpu.forward();
  gpu.forward();
  const auto compare = [&](const std::string& what, const std::vector<float>& ours,
                           const std::vector<float>& wanted) {
    INFO(what);
    agree(ours, wanted);
  };
  for (const net_blob& b : n.blobs)
    compare("data of " + b.name, gpu.data(b.name), cpu.data(b.name));
  for (std::size_t b = 0; b < n.blobs.size(); ++b) {
    const auto last = producer(n, b, n.layers.size());
    if (!last || consumer(n, b, *last) || !n.layers[*last].needs_backward) continue;
    const net_layer& l = n.layers[*last];
    if (!l.loss_weights.empty() && l.loss_weights[0] != 0 && l.tops[0] == b) continue;
    const auto dy = noise(cpu.size(b), ++seed);
    cpu.set_diff(n.blobs[b].name, dy);
    gpu.set_diff(n.blobs[b].name, dy);
  }
  cpu.backward();
  gpu.backward();
  for (const net_layer& l : n.layers) {
    for (std::size_t i = 0; i < l.propagate_down.size(); ++i) {
      const std::string& name = n.blobs[l.bottoms[i]].name;
      if (l.needs_backward && l.propagate_down[i])
        compare("diff of " + name, gpu.diff(name), cpu.diff(name));
    }
  }
  for (std::size_t p = 0; p < n.parameters.size(); ++p)
    compare("gradient of " + n.parameters[p].name, gpu.gradient(p), cpu.gradient(p));
}

/// In both layouts, and with NHWC reaching every layer: behind convolutions of what is noise; there in bfloat16, too, also on a processor
/// that multiplies it.
inline void check_both(const net& n, const named_values& inputs = {},
                       const std::function<void(running_net&)>& prepare = {}) {
  const comparison same = [](const auto& ours, const auto& wanted) {
    CHECK(deviation(ours, wanted) <= same_numbers);
  };
  const comparison alike = [](const auto& ours, const auto& wanted) {
    CHECK(distance(ours, wanted) <= rounded_numbers);
  };
  for (const device_layout layout : both_layouts)
    check_both_on(strict_gpu(layout), same, n, inputs, prepare);
  const net behind =
      behind_convolutions(n, [&](const std::string& name) { return !inputs.contains(name); });
  check_both_on(strict_gpu(device_layout::nhwc), same, behind, inputs, prepare);
  check_both_on(bf16_gpu(), alike, behind, inputs, prepare);
  if (multiplies_bf16())
    check_both_on(make_cpu_device(cpu_math::bf16), alike, behind, inputs, prepare);
}

/// A net of one layer over inputs x0, x1, ... of the given shapes; its tops are y0, y1, ...
struct one_layer {
  hand_net h;

  one_layer(const std::string& text, const std::vector<shape>& bottoms,
            const std::vector<shape>& tops, const std::vector<shape>& parameters = {},
            ::caffe::Phase phase = ::caffe::TRAIN)
      : h(phase) {
    h.all_diffs = true;
    std::string whole = text;
    for (std::size_t i = 0; i < bottoms.size(); ++i) {
      const std::string name = "x" + std::to_string(i);
      h.input(name, bottoms[i]);
      whole += " bottom: '" + name + "'";
    }
    for (std::size_t i = 0; i < tops.size(); ++i) whole += " top: 'y" + std::to_string(i) + "'";
    h.layer("name: 'layer' " + whole, tops, parameters);
  }
};

}  // namespace poseidon::test
