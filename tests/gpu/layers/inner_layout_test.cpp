// Blobs that a GPU has in NHWC are Caffe's NCHW to their readers outside: blobs that are read, written and fetched, and
// factors of weights.
#include "tests/gpu/layers/both_backends.hpp"

#include <future>

using namespace poseidon;
using namespace poseidon::test;

namespace {

/// x, a convolution, a pooling and an InnerProduct.
hand_net small_net() {
  hand_net h;
  h.input("x", {3, 4, 6, 5});
  h.layer(
      "name: 'conv' type: 'Convolution' bottom: 'x' top: 'conv' convolution_param { num_output: 6 "
      "kernel_size: 3 }",
      {{3, 6, 4, 3}}, {{6, 4, 3, 3}, {6}});
  h.layer(
      "name: 'pool' type: 'Pooling' bottom: 'conv' top: 'pool' pooling_param { kernel_size: 2 }",
      {{3, 6, 3, 2}});
  h.layer(
      "name: 'ip' type: 'InnerProduct' bottom: 'pool' top: 'ip' inner_product_param { num_output: "
      "5 }",
      {{3, 5}}, {{5, 36}, {5}});
  h.n.outputs = {h.blob("ip")};
  return h;
}

}  // namespace

TEST_CASE("gpu: what is written into an NHWC blob is read back in NCHW, and fetched in NCHW") {
  const hand_net h = small_net();
  running_net gpu(h.n, {1, true}, strict_gpu(device_layout::nhwc));
  running_net cpu(h.n, {1, true});
  const auto values = noise(gpu.size(h.blob("pool")), 4);
  gpu.set("pool", values);
  CHECK(gpu.data("pool") == values);
  gpu.set_diff("pool", values);
  CHECK(gpu.diff("pool") == values);

  const auto x = noise(gpu.size(h.blob("x")), 5);
  gpu.set("x", x);
  cpu.set("x", x);
  gpu.forward();
  cpu.forward();
  const std::size_t blobs[] = {h.blob("conv"), h.blob("ip")};
  const auto fetched = gpu.r->fetch(blobs);
  std::promise<void> here;
  fetched->when_here([&](const std::exception_ptr&) { here.set_value(); });
  here.get_future().wait();
  CHECK(deviation(fetched->values().at(0), cpu.data("conv")) <= same_numbers);
  CHECK(deviation(fetched->values().at(1), cpu.data("ip")) <= same_numbers);
}

TEST_CASE("gpu: factors behind NHWC are the CPU's") {
  const hand_net h = small_net();
  replica_options options;
  options.by_factors = {false, false, false, true};
  running_net gpu(h.n, options, strict_gpu(device_layout::nhwc)), cpu(h.n, options);
  std::vector<std::vector<float>> u, v;
  for (running_net* r : {&gpu, &cpu}) {
    r->set("x", noise(r->size(h.blob("x")), 5));
    r->forward();
    r->set_diff("ip", noise(15, 6));
    r->backward();
    u.emplace_back(15);
    v.emplace_back(3 * 36);
    r->r->at(3).factors(u.back(), v.back());
  }
  CHECK(deviation(u[0], u[1]) <= same_numbers);
  CHECK(deviation(v[0], v[1]) <= same_numbers);
}
