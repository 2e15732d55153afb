// Gradients of several passes of a clock, added on the device: the sum that the host would make, bit for bit.
#include "tests/gpu/streams/rig.hpp"

#include <doctest/doctest.h>

using namespace poseidon;
using namespace poseidon::test;
using gpu::simulated::lateness;

namespace {

using gradients = std::vector<std::vector<float>>;

/// One forward and backward pass over the `which`-th of some batches.
void run_pass(rig& r, std::uint32_t which, std::uint32_t micro_batch) {
  for (const char* top : {"data", "label"}) {
    const auto& blobs = r.graph().blobs;
    const auto b = static_cast<std::size_t>(
        std::find_if(blobs.begin(), blobs.end(), [&](const auto& x) { return x.name == top; }) -
        blobs.begin());
    std::vector<float> values(static_cast<std::size_t>(count(blobs[b].shape)));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = top[0] == 'd' ? number(which, i) : static_cast<float>((i + which) % 5);
    r.copy().write_data(b, values);
  }
  pass p{0, which * 6, 11};
  p.micro_batch = micro_batch;
  const auto& layers = r.graph().layers;
  for (std::size_t l = 0; l < layers.size(); ++l) r.copy().at(l).forward(p);
  for (std::size_t l = layers.size(); l-- > 0;)
    if (layers[l].needs_backward) r.copy().at(l).backward(p);
}

gradients gradients_of(rig& r) {
  r.copy().finish();
  gradients all;
  for (std::size_t p = 0; p < r.graph().parameters.size(); ++p) {
    const auto g = r.copy().gradient(p);
    all.emplace_back(g.begin(), g.end());
  }
  return all;
}

gradients sum_of(gradients a, const gradients& b) {
  for (std::size_t p = 0; p < a.size(); ++p)
    for (std::size_t i = 0; i < a[p].size(); ++i) a[p][i] += b[p][i];
  return a;
}

}  // namespace

TEST_CASE("added passes: the sum of a clock's passes, and then the next clock's") {
  gradients each[3];
  {
    rig alone(machine(lateness::none));
    for (std::uint32_t which = 0; which < 3; ++which) {
      run_pass(alone, which, 0);
      each[which] = gradients_of(alone);
    }
  }
  for (const lateness late : every_lateness) {
    CAPTURE(static_cast<int>(late));
    replica_options options;
    options.passes = 3;
    rig r(machine(late), options);
    for (std::uint32_t which = 0; which < 3; ++which) run_pass(r, which, which);
    CHECK(gradients_of(r) == sum_of(sum_of(each[0], each[1]), each[2]));
    run_pass(r, 2, 0);
    CHECK(gradients_of(r) == each[2]);
    run_pass(r, 0, 1);
    CHECK(gradients_of(r) == sum_of(each[2], each[0]));
  }
}
