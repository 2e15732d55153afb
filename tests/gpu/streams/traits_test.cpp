// What a node with GPUs tells others of them, before they train together.
#include "cpu/cpu_device.hpp"
#include "gpu/device.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using namespace poseidon;

namespace {

std::string told(const plugin_choice& choice, std::string_view name) {
  const auto traits = gpu::make_device(choice, make_cpu_device())->traits();
  const auto at =
      std::find_if(traits.begin(), traits.end(), [&](const trait& t) { return t.name == name; });
  return at == traits.end() ? "" : at->value;
}

}  // namespace

TEST_CASE("traits: a node tells its GPUs in their order, how they compute, and its C library") {
  plugin_choice choice;
  choice.ordinals = {0, 1};
  choice.math = device_math::fp32;
  choice.deterministic = true;
  CHECK(told(choice, trait_names::device) == "simulated (0.0), simulated (0.0)");
  CHECK(told(choice, "GPU libraries").starts_with("simulated"));
  CHECK(told(choice, "GPU arithmetic") == "products in fp32, images in NCHW");
  CHECK(!told(choice, trait_names::c_library).empty());
  // What the processor's kernels are chosen by does not matter here.
  CHECK(told(choice, trait_names::instructions).empty());
  CHECK(told(choice, trait_names::varies).empty());
}

TEST_CASE("traits: sums that have another order in every run are told") {
  plugin_choice choice;
  choice.ordinals = {0};
  choice.math = device_math::tf32;
  CHECK(told(choice, trait_names::varies) == "products in tf32");
}
