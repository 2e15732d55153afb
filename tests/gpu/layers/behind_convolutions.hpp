// tests/gpu/layers/behind_convolutions.hpp - the same net, with what it takes coming out of convolutions: on a GPU whose images
// are NHWC inside its layers then have NHWC, or conversions where they take only NCHW.
#pragma once
#include "models/net/net.hpp"

#include <functional>
#include <string>

namespace poseidon::test {

/// A 1x1 convolution, without bias, behind every top of an Input that has channels and of which `wanted(name)`.
inline net behind_convolutions(const net& n,
                               const std::function<bool(const std::string&)>& wanted) {
  net out = n;
  out.layers.clear();
  std::vector<std::size_t> now(n.blobs.size()), place(n.layers.size());
  for (std::size_t b = 0; b < now.size(); ++b) now[b] = b;
  for (std::size_t i = 0; i < n.layers.size(); ++i) {
    net_layer l = n.layers[i];
    for (std::size_t& b : l.bottoms) b = now[b];
    for (std::size_t& t : l.tops) t = now[t];
    place[i] = out.layers.size();
    out.layers.push_back(l);
    if (l.type != "Input") continue;
    for (const std::size_t t : l.tops) {
      const net_blob from = n.blobs[t];
      if (from.shape.size() != 4 || from.shape[1] == 1 || !wanted(from.name)) continue;
      net_layer c;
      c.name = "convolution of " + from.name;
      c.type = "Convolution";
      c.spec.mutable_convolution_param()->set_num_output(static_cast<unsigned>(from.shape[1]));
      c.spec.mutable_convolution_param()->add_kernel_size(1);
      c.spec.mutable_convolution_param()->set_bias_term(false);
      c.bottoms = {t};
      now[t] = out.blobs.size();
      c.tops = {now[t]};
      out.blobs.push_back({c.name, from.shape});
      c.propagate_down = c.learn = {true};
      c.needs_backward = true;
      c.loss_weights = {0};
      c.parameters = {out.parameters.size()};
      net_parameter w;
      w.layer = out.layers.size();
      w.name = c.name + "/0";
      w.shape = {from.shape[1], from.shape[1], 1, 1};
      out.parameters.push_back(w);
      out.layers.push_back(c);
    }
  }
  for (std::size_t p = 0; p < n.parameters.size(); ++p)
    out.parameters[p].layer = place[n.parameters[p].layer];
  for (std::size_t& b : out.outputs) b = now[b];
  return out;
}

}  // namespace poseidon::test
