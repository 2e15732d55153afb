// actors/run/pass_loop.hpp - one pass of a replica without actors: its layers in order, in the thread that calls.
#pragma once
#include "models/device/device.hpp"
#include "models/net/net.hpp"

#include <cstddef>

namespace poseidon {

class pass_loop {
 public:
  /// `n` and `copy`, which is compiled from it, outlive this. Layers from `layers` on are left out.
  pass_loop(const net& n, replica& copy, std::size_t layers)
      : net_(n), copy_(copy), layers_(layers) {}
  pass_loop(const net& n, replica& copy) : pass_loop(n, copy, n.layers.size()) {}

  /// The batch that a data layer reads in the next pass. It stays until the next one is fed.
  void feed(std::size_t layer, const batch& values) { copy_.at(layer).feed(values); }

  /// Calls around(layer, compute) for each layer in net order; compute() executes its kernel.
  template <class F>
  void forward(const pass& p, F&& around) {
    for (std::size_t l = 0; l < layers_; ++l) around(l, [&] { copy_.at(l).forward(p); });
  }
  /// Calls around(layer, compute) in reverse order for each layer with a backward pass.
  template <class F>
  void backward(const pass& p, F&& around) {
    for (std::size_t l = layers_; l-- > 0;)
      if (runs_backward(net_, net_.layers[l])) around(l, [&] { copy_.at(l).backward(p); });
  }

 private:
  const net& net_;
  replica& copy_;
  std::size_t layers_;
};

}  // namespace poseidon
