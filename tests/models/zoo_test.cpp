// The nets that we ship build in both phases, with the shapes that the papers' tables and Caffe's
// logs give.
#include "models/net_builder.hpp"
#include "tests/models/nets.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {
net shipped(const char* file, ::caffe::Phase phase, shape sample, std::int64_t split = 1) {
  build_options options;
  options.state.phase = phase;
  options.sources = test::images(std::move(sample));
  options.split_batch = split;
  return build_net(read_net(file), options);
}

std::int64_t parameter_values(const net& n) {
  std::int64_t sum = 0;
  for (const auto& p : n.parameters) sum += count(p.shape);
  return sum;
}
}  // namespace

TEST_CASE(
    "zoo: LeNet trains 431,080 values, and its test net adds accuracy behind a split of scores and "
    "labels") {
  const auto train = shipped("models/zoo/lenet/train_val.prototxt", ::caffe::TRAIN, {1, 28, 28});
  CHECK(parameter_values(train) == 431080);
  CHECK(to_string(test::top_of(train, "conv1")) == "64x20x24x24");
  CHECK(to_string(test::top_of(train, "pool1")) == "64x20x12x12");
  CHECK(to_string(test::top_of(train, "conv2")) == "64x50x8x8");
  CHECK(to_string(test::top_of(train, "pool2")) == "64x50x4x4");
  CHECK(to_string(test::top_of(train, "ip2")) == "64x10");
  CHECK(to_string(test::top_of(train, "loss")) == "scalar");
  CHECK(train.layers.size() == 9);

  const auto test_net = shipped("models/zoo/lenet/train_val.prototxt", ::caffe::TEST, {1, 28, 28});
  CHECK(test::named(test_net, "label_data_1_split").tops.size() == 2);
  CHECK(test::named(test_net, "ip2_ip2_0_split").tops.size() == 2);
  REQUIRE(test_net.outputs.size() == 2);
  CHECK(test_net.blobs[test_net.outputs[0]].name == "accuracy");
  CHECK(test_net.blobs[test_net.outputs[1]].name == "loss");
}

TEST_CASE("zoo: CIFAR-10 quick has 145,578 values and Caffe's ceil-rounded pools") {
  const auto n =
      shipped("models/zoo/cifar10_quick/train_val.prototxt", ::caffe::TRAIN, {3, 32, 32});
  CHECK(parameter_values(n) == 145578);
  CHECK(to_string(test::top_of(n, "pool1")) == "100x32x16x16");
  CHECK(to_string(test::top_of(n, "pool3")) == "100x64x4x4");
}

TEST_CASE("zoo: the deploy nets take the weights of the training nets, layer by layer") {
  for (const std::string folder : {"models/zoo/lenet/", "models/zoo/cifar10_quick/"}) {
    const shape sample =
        folder.find("lenet") != std::string::npos ? shape{1, 28, 28} : shape{3, 32, 32};
    const auto train = shipped((folder + "train_val.prototxt").c_str(), ::caffe::TRAIN, sample);
    const auto deploy = shipped((folder + "deploy.prototxt").c_str(), ::caffe::TEST, sample);
    REQUIRE(train.parameters.size() == deploy.parameters.size());
    for (std::size_t i = 0; i < train.parameters.size(); ++i) {
      CHECK(train.parameters[i].name == deploy.parameters[i].name);
      CHECK(train.parameters[i].shape == deploy.parameters[i].shape);
    }
  }
}

TEST_CASE("zoo: two replicas of a node take half a batch each") {
  const auto n = shipped("models/zoo/lenet/train_val.prototxt", ::caffe::TRAIN, {1, 28, 28}, 2);
  CHECK(to_string(test::top_of(n, "data")) == "32x1x28x28");
  CHECK(to_string(test::top_of(n, "data", 1)) == "32");
}
