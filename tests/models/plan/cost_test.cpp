// What a layer costs: operations and bytes, as one counts them by hand.
#include "models/plan/cost.hpp"

#include "tests/models/nets.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {

net two_ways() {
  return test::build(
      test::input("data", {4, 3, 8, 8}) + test::input("label", {4}) +
      test::layer("conv1", "Convolution", "data", "conv1",
                  "convolution_param { num_output: 5 kernel_size: 3 }") +
      test::layer("relu1", "ReLU", "conv1", "conv1") +
      test::layer("pool1", "Pooling", "conv1", "pool1",
                  "pooling_param { kernel_size: 2 stride: 2 }") +
      test::layer("pool2", "Pooling", "conv1", "pool2",
                  "pooling_param { kernel_size: 2 stride: 2 pool: AVE }") +
      "layer { name: \"sum\" type: \"Eltwise\" bottom: \"pool1\" bottom: \"pool2\" top: \"sum\" "
      "}\n" +
      test::layer("ip1", "InnerProduct", "sum", "ip1", "inner_product_param { num_output: 7 }") +
      "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip1\" "
      "bottom: \"label\" top: \"loss\" }\n");
}

constexpr std::uint64_t batch = 4, image = batch * 3 * 8 * 8, conv = batch * 5 * 6 * 6,
                        pooled = batch * 5 * 3 * 3, conv_weights = 5 * 3 * 3 * 3,
                        conv_all = conv_weights + 5, scores = batch * 7, ip_weights = 7 * 45,
                        ip_all = ip_weights + 7;

}  // namespace

TEST_CASE("cost: operations and bytes of each kind of layer") {
  const auto n = two_ways();
  struct expected {
    std::uint64_t forward, backward;
  };
  const auto check = [&](const std::string& name, expected flops, expected values) {
    INFO(name);
    std::size_t at = 0;
    while (at < n.layers.size() && n.layers[at].name != name) ++at;
    REQUIRE(at < n.layers.size());
    CHECK(flops_of(n, at).forward == flops.forward);
    CHECK(flops_of(n, at).backward == flops.backward);
    CHECK(bytes_of(n, at).forward == 4 * values.forward);
    CHECK(bytes_of(n, at).backward == 4 * values.backward);
  };
  const auto conv_flop = 2 * conv_weights * batch * 6 * 6, ip_flop = 2 * ip_weights * batch;
  // The first convolution has no diff for the images.
  check("conv1", {conv_flop, conv_flop},
        {image + conv_all + conv, conv + image + conv_all + conv_all});
  check("relu1", {0, 0}, {2 * conv, 3 * conv});
  // Its two tops are the bottom itself; backwards their diffs are added.
  check("conv1_relu1_0_split", {0, 0}, {0, 3 * conv});
  check("pool1", {0, 0}, {conv + pooled, pooled + conv});
  check("sum", {0, 0}, {3 * pooled, 3 * pooled});
  check("ip1", {ip_flop, 2 * ip_flop},
        {pooled + ip_all + scores, scores + pooled + ip_all + ip_all + pooled});
}
