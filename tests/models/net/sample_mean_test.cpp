#include "models/net/sample_mean.hpp"

#include "tests/models/nets.hpp"

#include <doctest/doctest.h>

using namespace poseidon;
using namespace poseidon::test;

namespace {

const auto product =
    input("x", {8, 3}) + input("label", {8}) +
    layer("ip", "InnerProduct", "x", "ip", "inner_product_param { num_output: 4 }");

std::string loss(const std::string& more) {
  return product + layer("loss", "SoftmaxWithLoss", "ip", "loss", "bottom: \"label\" " + more);
}

std::string refusal(const std::string& text) {
  try {
    require_sample_means(build(text));
    return {};
  } catch (const spec_error& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("sample_mean: losses that are means over samples can be of parts, sums cannot") {
  CHECK(refusal(loss("")) == "");
  for (const auto* mode : {"FULL", "VALID", "BATCH_SIZE"})
    CHECK(refusal(loss(std::string("loss_param { normalization: ") + mode + " }")) == "");
  CHECK(refusal(loss("loss_param { normalization: NONE }")) ==
        "net.prototxt:4: layer \"loss\" (SoftmaxWithLoss): normalization is NONE, so its loss is a "
        "sum over the "
        "samples of a batch, and a node with fewer samples could not count by them. BATCH_SIZE, "
        "FULL and VALID can. Leave out --batch-share and --global-batch keep: where "
        "every node takes the net's batch, this net trains.");
  const auto reduction = [](const std::string& how) {
    return product +
           layer("r", "Reduction", "ip", "r", "loss_weight: 1 reduction_param { " + how + " }");
  };
  CHECK(refusal(reduction("operation: MEAN")) == "");
  CHECK(
      refusal(reduction("operation: SUM")).find("a sum over the samples of a batch, not a mean") !=
      std::string::npos);
  CHECK(refusal(reduction("operation: MEAN axis: 1")).find("not a mean") != std::string::npos);
  // A weight on values that go on to another layer lies on their Split.
  const auto on_values = input("x", {8, 3}) + input("label", {8}) +
                         layer("ip", "InnerProduct", "x", "ip",
                               "loss_weight: 2 inner_product_param { num_output: 4 }") +
                         layer("loss", "SoftmaxWithLoss", "ip", "loss", "bottom: \"label\"");
  CHECK(refusal(on_values).find("layer \"ip\" (InnerProduct): its loss is a sum") !=
        std::string::npos);
}

TEST_CASE("sample_mean: the losses of the parts of a batch add up to the whole batch's mean") {
  auto three = build(loss("loss_weight: 0.5")), five = three;
  weigh_losses(three, 3, 8);
  weigh_losses(five, 5, 8);
  const auto weight = [](const net& n) { return n.layers.back().loss_weights.front(); };
  CHECK(weight(three) == doctest::Approx(0.5 * 3 / 8));
  CHECK(weight(three) + weight(five) == doctest::Approx(0.5));
  CHECK(five.layers[2].loss_weights.front() == 0);
}

TEST_CASE(
    "sample_mean: a source gives a replica its samples, and parameters may not depend on how "
    "many") {
  build_options part;
  part.samples = 3;
  part.of_batch = 8;
  const auto file = parse_net(loss(""), "net.prototxt");
  const auto whole = build(loss("")), n = build_net(file, part);
  CHECK(n.blobs[0].shape == shape{3, 3});
  CHECK(n.blobs[1].shape == shape{3});
  CHECK_NOTHROW(require_same_parameters(whole, n));
  const auto two_batches = parse_net(input("x", {8, 3}) + input("y", {4, 3}), "f");
  CHECK_THROWS_WITH_AS((void)build_net(two_batches, part),
                       doctest::Contains("of its batch 4x3 nobody can take 3 samples of 8"),
                       spec_error);
  const auto over_batch =
      input("x", {8, 3}) +
      layer("ip", "InnerProduct", "x", "ip", "inner_product_param { num_output: 4 axis: 0 }");
  CHECK_THROWS_WITH_AS(
      require_same_parameters(build(over_batch), build_net(parse_net(over_batch, "f"), part)),
      doctest::Contains("its parameter 0 is 4x24 with the net's batch and 4x9 with a share"),
      spec_error);
}
