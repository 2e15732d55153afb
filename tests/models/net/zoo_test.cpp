// The nets that we ship build in both phases and for use, with the numbers of parameters and the
// shapes that the papers' tables and Caffe's logs give.
#include "models/net/net_builder.hpp"
#include "models/solver/solver_file.hpp"
#include "tests/models/nets.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

using namespace poseidon;

namespace {

/// BatchNorm's statistics (mean, variance and their factor: 2 * channels + 1 per layer) are kept
/// by the layer and not learned; papers do not count them, so they are counted apart.
struct zoo_net {
  std::string folder;
  shape sample;
  std::int64_t learned_in_training = 0;
  std::int64_t learned_in_use = 0;  ///< less where auxiliary heads only help to train
  std::int64_t statistics_in_training = 0;
};

const std::vector<zoo_net>& nets() {
  static const std::vector<zoo_net> all{
      {"lenet", {1, 28, 28}, 431'080, 431'080},
      {"cifar10_quick", {3, 32, 32}, 145'578, 145'578},
      {"cifar10_full", {3, 32, 32}, 89'578, 89'578},
      {"alexnet", {3, 227, 227}, 60'965'224, 60'965'224},
      {"caffenet", {3, 227, 227}, 60'965'224, 60'965'224},
      {"googlenet", {3, 224, 224}, 13'378'280, 6'998'552},
      {"vgg16", {3, 224, 224}, 138'357'544, 138'357'544},
      {"vgg19", {3, 224, 224}, 143'667'240, 143'667'240},
      {"vgg19_22k", {3, 224, 224}, 229'052'817, 229'052'817},
      {"resnet50", {3, 224, 224}, 25'557'032, 25'557'032, 53'120 + 53},
      {"resnet152", {3, 224, 224}, 60'192'808, 60'192'808, 151'424 + 155},
      {"inception_v3", {3, 299, 299}, 27'161'264, 23'834'568, 36'224 + 96},
  };
  return all;
}

const zoo_net& of(const std::string& folder) {
  return *std::find_if(nets().begin(), nets().end(),
                       [&](const zoo_net& z) { return z.folder == folder; });
}

net built(const zoo_net& z, const std::string& file, ::caffe::Phase phase,
          std::int64_t split_batch = 1) {
  build_options options;
  options.state.phase = phase;
  options.sources = test::images(z.sample);
  options.split_batch = split_batch;
  return build_net(read_net("models/zoo/" + z.folder + "/" + file), options);
}

net for_training(const std::string& folder) {
  return built(of(folder), "train_val.prototxt", ::caffe::TRAIN);
}

bool is_statistic(const net& n, const net_parameter& p) {
  return n.layers[p.layer].type == "BatchNorm";
}

std::int64_t values(const net& n, bool statistics) {
  std::int64_t sum = 0;
  for (const auto& p : n.parameters)
    if (is_statistic(n, p) == statistics) sum += count(p.shape);
  return sum;
}

using places = std::vector<std::pair<std::string, std::string>>;

/// The first top of each layer.
void check_shapes(const net& n, const places& wanted) {
  for (const auto& [layer, text] : wanted) {
    INFO(layer);
    CHECK(to_string(test::top_of(n, layer)) == text);
  }
}

}  // namespace

TEST_CASE("zoo: every folder's nets have the published numbers of parameters, in every phase") {
  for (const auto& z : nets()) {
    INFO(z.folder);
    const auto train = built(z, "train_val.prototxt", ::caffe::TRAIN);
    CHECK(values(train, false) == z.learned_in_training);
    CHECK(values(train, true) == z.statistics_in_training);
    const auto test_net = built(z, "train_val.prototxt", ::caffe::TEST);
    CHECK(values(test_net, false) == z.learned_in_training);
    CHECK(values(test_net, true) == z.statistics_in_training);
    CHECK(values(built(z, "deploy.prototxt", ::caffe::TEST), false) == z.learned_in_use);
  }
}

TEST_CASE("zoo: no folder is without numbers here") {
  std::set<std::string> folders, known;
  for (const auto& entry : std::filesystem::directory_iterator("models/zoo"))
    if (entry.is_directory()) folders.insert(entry.path().filename().string());
  for (const auto& z : nets()) known.insert(z.folder);
  CHECK(folders == known);
}

TEST_CASE("zoo: the solvers resolve, train the net beside them and test it") {
  for (const auto& z : nets()) {
    INFO(z.folder);
    const auto solver = read_solver("models/zoo/" + z.folder + "/solver.prototxt");
    CHECK(solver.spec.net() == "models/zoo/" + z.folder + "/train_val.prototxt");
    CHECK(solver.spec.snapshot_prefix() == z.folder);
    CHECK(solver.spec.max_iter() > 0);
    REQUIRE(solver.test_nets.size() == 1);
    const auto batch = test::top_of(built(z, "train_val.prototxt", ::caffe::TEST), "data")[0];
    const bool is_imagenet = z.sample[2] > 32;
    CHECK(solver.spec.test_iter(0) * batch == (is_imagenet ? 50'000 : 10'000));
    CHECK(learning_rate(solver.spec, 0) == solver.spec.base_lr());
    const auto last = static_cast<std::uint64_t>(solver.spec.max_iter() - 1);
    const bool falls = solver.spec.lr_policy() != "fixed";
    CHECK((learning_rate(solver.spec, last) < solver.spec.base_lr() / 9) == falls);
    CHECK(rule_of(solver.spec).momentum == (z.folder == "inception_v3" ? 0 : 0.9f));
  }
}

TEST_CASE("zoo: the deploy nets take the weights of the training nets, by layer and shape") {
  for (const auto& z : nets()) {
    INFO(z.folder);
    const auto train = built(z, "train_val.prototxt", ::caffe::TRAIN);
    const auto deploy = built(z, "deploy.prototxt", ::caffe::TEST);
    auto at = train.parameters.begin();  // the same order, but for heads that are left out
    for (const auto& p : deploy.parameters) {
      INFO(p.name);
      at = std::find_if(at, train.parameters.end(),
                        [&](const net_parameter& t) { return t.name == p.name; });
      REQUIRE(at != train.parameters.end());
      CHECK(at->shape == p.shape);
    }
    const bool has_heads = z.learned_in_training != z.learned_in_use;
    CHECK((train.parameters.size() > deploy.parameters.size()) == has_heads);
    REQUIRE(deploy.outputs.size() == 1);
    CHECK(deploy.blobs[deploy.outputs[0]].name == "prob");
  }
}

TEST_CASE("zoo: LeNet's test net adds accuracy behind a split of scores and labels") {
  const auto train = for_training("lenet");
  check_shapes(train, {{"data", "64x1x28x28"},
                       {"conv1", "64x20x24x24"},
                       {"pool1", "64x20x12x12"},
                       {"conv2", "64x50x8x8"},
                       {"pool2", "64x50x4x4"},
                       {"ip1", "64x500"},
                       {"ip2", "64x10"},
                       {"loss", "scalar"}});
  CHECK(train.layers.size() == 9);
  const auto test_net = built(of("lenet"), "train_val.prototxt", ::caffe::TEST);
  CHECK(test::named(test_net, "label_data_1_split").tops.size() == 2);
  CHECK(test::named(test_net, "ip2_ip2_0_split").tops.size() == 2);
  REQUIRE(test_net.outputs.size() == 2);
  CHECK(test_net.blobs[test_net.outputs[0]].name == "accuracy");
  CHECK(test_net.blobs[test_net.outputs[1]].name == "loss");
}

TEST_CASE("zoo: CIFAR-10's pools round up, as Caffe's do") {
  check_shapes(for_training("cifar10_quick"), {{"conv1", "100x32x32x32"},
                                               {"pool1", "100x32x16x16"},
                                               {"pool2", "100x32x8x8"},
                                               {"pool3", "100x64x4x4"},
                                               {"ip1", "100x64"},
                                               {"ip2", "100x10"}});
  check_shapes(for_training("cifar10_full"), {{"conv1", "100x32x32x32"},
                                              {"pool1", "100x32x16x16"},
                                              {"norm1", "100x32x16x16"},
                                              {"conv2", "100x32x16x16"},
                                              {"norm2", "100x32x8x8"},
                                              {"conv3", "100x64x8x8"},
                                              {"pool3", "100x64x4x4"},
                                              {"ip1", "100x10"}});
}

TEST_CASE("zoo: AlexNet normalises before it pools, CaffeNet after; both have two groups") {
  const places common{
      {"data", "256x3x227x227"},  {"conv1", "256x96x55x55"},  {"pool1", "256x96x27x27"},
      {"conv2", "256x256x27x27"}, {"pool2", "256x256x13x13"}, {"conv3", "256x384x13x13"},
      {"conv4", "256x384x13x13"}, {"conv5", "256x256x13x13"}, {"pool5", "256x256x6x6"},
      {"fc6", "256x4096"},        {"fc7", "256x4096"},        {"fc8", "256x1000"}};
  for (const std::string folder : {"alexnet", "caffenet"}) {
    const auto n = for_training(folder);
    check_shapes(n, common);
    CHECK(to_string(test::top_of(n, "norm1")) ==
          (folder == "alexnet" ? "256x96x55x55" : "256x96x27x27"));
    const auto& conv2 = n.parameters[test::named(n, "conv2").parameters[0]];
    CHECK(to_string(conv2.shape) == "256x48x5x5");
  }
}

TEST_CASE("zoo: GoogLeNet's modules have the widths of its table; its side heads count 0.3") {
  const auto n = for_training("googlenet");
  check_shapes(n, {{"conv1/7x7_s2", "32x64x112x112"},
                   {"pool1/3x3_s2", "32x64x56x56"},
                   {"conv2/3x3", "32x192x56x56"},
                   {"inception_3a/output", "32x256x28x28"},
                   {"inception_3b/output", "32x480x28x28"},
                   {"inception_4a/output", "32x512x14x14"},
                   {"inception_4b/output", "32x512x14x14"},
                   {"inception_4c/output", "32x512x14x14"},
                   {"inception_4d/output", "32x528x14x14"},
                   {"inception_4e/output", "32x832x14x14"},
                   {"inception_5a/output", "32x832x7x7"},
                   {"inception_5b/output", "32x1024x7x7"},
                   {"pool5/7x7_s1", "32x1024x1x1"},
                   {"loss1/ave_pool", "32x512x4x4"},
                   {"loss2/ave_pool", "32x528x4x4"},
                   {"loss1/fc", "32x1024"},
                   {"loss3/classifier", "32x1000"}});
  CHECK(test::named(n, "loss1/loss").loss_weights[0] == 0.3f);
  CHECK(test::named(n, "loss2/loss").loss_weights[0] == 0.3f);
  CHECK(test::named(n, "loss3/loss3").loss_weights[0] == 1);
}

TEST_CASE("zoo: VGG halves the image five times; the 22K net differs in its last layer alone") {
  const places common{
      {"conv1_2", "32x64x224x224"}, {"pool1", "32x64x112x112"},  {"conv2_2", "32x128x112x112"},
      {"pool2", "32x128x56x56"},    {"conv3_3", "32x256x56x56"}, {"pool3", "32x256x28x28"},
      {"conv4_3", "32x512x28x28"},  {"pool4", "32x512x14x14"},   {"conv5_3", "32x512x14x14"},
      {"pool5", "32x512x7x7"},      {"fc6", "32x4096"},          {"fc7", "32x4096"}};
  for (const std::string folder : {"vgg16", "vgg19", "vgg19_22k"}) {
    INFO(folder);
    const auto n = for_training(folder);
    check_shapes(n, common);
    if (folder == "vgg16")
      CHECK_THROWS(test::top_of(n, "conv5_4"));
    else
      check_shapes(n, {{"conv3_4", "32x256x56x56"}, {"conv5_4", "32x512x14x14"}});
    if (folder == "vgg19_22k")
      check_shapes(n, {{"fc8_22k", "32x21841"}});
    else
      check_shapes(n, {{"fc8", "32x1000"}});
  }
}

TEST_CASE(
    "zoo: a ResNet halves the image in the first 1x1 of a stage, as its authors' weights do") {
  const places common{{"conv1", "32x64x112x112"},        {"pool1", "32x64x56x56"},
                      {"res2a_branch1", "32x256x56x56"}, {"res2a_branch2a", "32x64x56x56"},
                      {"res2c", "32x256x56x56"},         {"res3a_branch2a", "32x128x28x28"},
                      {"res3a_branch1", "32x512x28x28"}, {"res4a_branch2b", "32x256x14x14"},
                      {"res5a_branch1", "32x2048x7x7"},  {"bn5c_branch2c", "32x2048x7x7"},
                      {"res5c", "32x2048x7x7"},          {"pool5", "32x2048x1x1"},
                      {"scale_conv1", "32x64x112x112"},  {"fc1000", "32x1000"}};
  const auto shallow = for_training("resnet50"), deep = for_training("resnet152");
  check_shapes(shallow, common);
  check_shapes(shallow, {{"res3d", "32x512x28x28"}, {"res4f", "32x1024x14x14"}});
  check_shapes(deep, common);
  check_shapes(deep, {{"res3b7", "32x512x28x28"},
                      {"res4b35", "32x1024x14x14"},
                      {"scale4b35_branch2c", "32x1024x14x14"}});
}

TEST_CASE("zoo: Inception-V3 goes from 35 to 17 to 8, with 1x7 and 7x1 that keep the size") {
  const auto n = for_training("inception_v3");
  check_shapes(n, {{"Conv2d_1a_3x3", "32x32x149x149"},
                   {"Conv2d_2b_3x3", "32x64x147x147"},
                   {"MaxPool_3a_3x3", "32x64x73x73"},
                   {"Conv2d_4a_3x3", "32x192x71x71"},
                   {"Mixed_5b", "32x256x35x35"},
                   {"Mixed_5d", "32x288x35x35"},
                   {"Mixed_6a", "32x768x17x17"},
                   {"Mixed_6b/branch7x7_2", "32x128x17x17"},
                   {"Mixed_6e", "32x768x17x17"},
                   {"AuxLogits/conv1", "32x768x1x1"},
                   {"Mixed_7a", "32x1280x8x8"},
                   {"Mixed_7b", "32x2048x8x8"},
                   {"AvgPool", "32x2048x1x1"},
                   {"fc", "32x1000"}});
  const places weights{
      {"Mixed_6b/branch7x7_2", "128x128x1x7"},    {"Mixed_6b/branch7x7_3", "192x128x7x1"},
      {"Mixed_6d/branch7x7dbl_2", "160x160x7x1"}, {"Mixed_6d/branch7x7dbl_3", "160x160x1x7"},
      {"Mixed_6d/branch7x7dbl_4", "160x160x7x1"}, {"Mixed_6d/branch7x7dbl_5", "192x160x1x7"},
      {"Mixed_7a/branch7x7x3_2", "192x192x1x7"},  {"Mixed_7a/branch7x7x3_3", "192x192x7x1"},
      {"Mixed_7b/branch3x3_2a", "384x384x1x3"},   {"Mixed_7b/branch3x3_2b", "384x384x3x1"}};
  for (const auto& [layer, text] : weights) {
    INFO(layer);
    CHECK(to_string(n.parameters[test::named(n, layer).parameters[0]].shape) == text);
  }
  CHECK(test::named(n, "AuxLogits/loss").loss_weights[0] == 0.4f);
}

TEST_CASE("zoo: two replicas of a node take half a batch each") {
  const auto n = built(of("lenet"), "train_val.prototxt", ::caffe::TRAIN, 2);
  CHECK(to_string(test::top_of(n, "data")) == "32x1x28x28");
  CHECK(to_string(test::top_of(n, "data", 1)) == "32");
}
