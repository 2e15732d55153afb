// tests/gpu/both_backends.hpp
//
// One net on the CPU and on a GPU: the same inputs and parameters go in, and what every layer makes of them has to
// agree. The GPU is the simulated one (strict_gpu.cpp), or that of a plug-in (tests/gpu_plugin).
#pragma once
#include "models/device_plugin.hpp"
#include "tests/cpu/hand_net.hpp"
#include "tests/gpu/behind_convolutions.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace poseidon::test {

/// GPU 0 with strict products, so that only the order of sums differs.
[[nodiscard]] std::shared_ptr<device> strict_gpu(device_layout layout);
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

/// Sums in other orders, and functions of another library: some of the last bits of a float.
inline constexpr double same_numbers = 2e-5;

/// Labels 0, 1, ... below `classes`, all of them sooner or later.
inline std::vector<float> labels(std::size_t size, std::size_t classes) {
  std::vector<float> v(size);
  for (std::size_t i = 0; i < size; ++i) v[i] = static_cast<float>(i * 7 % classes);
  return v;
}

using named_values = std::map<std::string, std::vector<float>>;

/// Runs both, the GPU with images in `layout`, forward and backward, from `inputs` (noise where an Input is not named) and from noise in the diffs of
/// the net's outputs that are no losses. Checks the data of every blob, the diffs that layers have to write, and every
/// gradient. Both keep all diffs. `prepare` may change the parameters, which are noise, of either.
inline void check_both_in(device_layout layout, const net& n, const named_values& inputs,
                          const std::function<void(running_net&)>& prepare) {
  CAPTURE(layout == device_layout::nhwc);
  const replica_options keep{1, true};
  running_net cpu(n, keep), gpu(n, keep, strict_gpu(layout));
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
    CHECK(deviation(ours, wanted) <= same_numbers);
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

/// In both layouts, and with NHWC reaching every layer: behind convolutions of what is noise.
inline void check_both(const net& n, const named_values& inputs = {},
                       const std::function<void(running_net&)>& prepare = {}) {
  for (const device_layout layout : both_layouts) check_both_in(layout, n, inputs, prepare);
  const net behind =
      behind_convolutions(n, [&](const std::string& name) { return !inputs.contains(name); });
  check_both_in(device_layout::nhwc, behind, inputs, prepare);
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
