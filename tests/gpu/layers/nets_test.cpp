// Whole nets on a GPU against the CPU: what one layer leaves another finds, also in memory that blobs share.
#include "models/net/net_builder.hpp"
#include "tests/gpu/layers/both_backends.hpp"

using namespace poseidon;
using namespace poseidon::test;

namespace {

/// A net of the zoo with a batch of `samples`, its data layer's pictures of `side` where that is given.
net zoo_net(const std::string& folder, std::int64_t samples, const shape& picture) {
  build_options options;
  options.sources = [&](const ::caffe::LayerParameter&, const spec_position&) {
    shape data{samples};
    data.insert(data.end(), picture.begin(), picture.end());
    return std::vector<shape>{data, {samples}};
  };
  return build_net(read_net("models/zoo/" + folder + "/train_val.prototxt"), options);
}

/// Loss and gradients of one pass, with the layers' usual memory: blobs share places.
void check_training_on(const std::shared_ptr<device>& with, const comparison& agree, const net& n,
                       std::size_t classes) {
  CAPTURE(with->describe());
  running_net cpu(n), gpu(n, {}, with);
  for (const net_layer& l : n.layers) {
    if (!is_source(l)) continue;
    const auto pictures = noise(cpu.size(l.tops[0]), 1);
    const auto right = labels(cpu.size(l.tops[1]), classes);
    for (auto* r : {&cpu, &gpu}) {
      r->set(n.blobs[l.tops[0]].name, pictures);
      r->set(n.blobs[l.tops[1]].name, right);
    }
  }
  for (int pass = 0; pass < 2; ++pass) {
    for (auto* r : {&cpu, &gpu}) {
      r->now.clock = static_cast<std::uint64_t>(pass);
      r->now.first_sample = static_cast<std::uint64_t>(pass) * 1000;
      r->forward();
      r->backward();
    }
    for (const std::size_t b : n.outputs) {
      CAPTURE(n.blobs[b].name);
      agree(gpu.data(n.blobs[b].name), cpu.data(n.blobs[b].name));
    }
    for (std::size_t p = 0; p < n.parameters.size(); ++p) {
      CAPTURE(n.parameters[p].name);
      agree(gpu.gradient(p), cpu.gradient(p));
    }
    for (auto& values : {&cpu.parameters, &gpu.parameters})
      for (auto& v : *values)
        for (float& w : v) w *= 0.9f;
    cpu.touch();
    gpu.touch();
  }
}

void check_training(const net& n, std::size_t classes, double tolerance) {
  const comparison same = [&](const auto& ours, const auto& wanted) {
    CHECK(deviation(ours, wanted) <= tolerance);
  };
  const comparison alike = [](const auto& ours, const auto& wanted) {
    CHECK(distance(ours, wanted) <= rounded_numbers);
  };
  for (const device_layout layout : both_layouts)
    check_training_on(strict_gpu(layout), same, n, classes);
  check_training_on(bf16_gpu(), alike, n, classes);
}

}  // namespace

TEST_CASE("gpu: LeNet's loss and gradients equal the CPU's, pass after pass") {
  check_training(zoo_net("lenet", 5, {1, 28, 28}), 10, 1e-4);
}

TEST_CASE("gpu: CIFAR-10's nets equal the CPU's") {
  check_training(zoo_net("cifar10_quick", 3, {3, 32, 32}), 10, 1e-4);
  check_training(zoo_net("cifar10_full", 3, {3, 32, 32}), 10, 1e-4);
}

TEST_CASE("gpu: every layer type of the zoo has a kernel") {
  const auto gpu = strict_gpu({});
  for (const std::string folder :
       {"lenet", "cifar10_quick", "cifar10_full", "alexnet", "caffenet", "googlenet", "vgg16",
        "vgg19", "vgg19_22k", "resnet50", "resnet152", "inception_v3"}) {
    const net_file file = read_net("models/zoo/" + folder + "/train_val.prototxt");
    for (const auto& l : file.spec.layer()) {
      CAPTURE(folder);
      CAPTURE(l.type());
      CHECK(gpu->supports(l.type()));
    }
  }
}
