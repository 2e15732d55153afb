// Which layers and blobs of a net have NHWC inside, and where that ends.
#include "gpu/device.hpp"
#include "gpu/layout.hpp"
#include "gpu/simulated/control.hpp"
#include "models/net/net_builder.hpp"
#include "tests/cpu/hand_net.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

using namespace poseidon;
using namespace poseidon::gpu;
using poseidon::test::hand_net;

namespace {

net zoo_net(const std::string& folder, std::int64_t batch = 2) {
  build_options options;
  options.sources = [=](const ::caffe::LayerParameter& l, const spec_position&) {
    const std::int64_t crop = l.transform_param().crop_size(), side = crop != 0 ? crop : 32;
    return std::vector<shape>{{batch, 3, side, side}, {batch}};
  };
  return build_net(read_net("models/zoo/" + folder + "/train_val.prototxt"), options);
}

/// Names of the layers that get copies of some blob in another layout.
std::vector<std::string> borders(const net& n, const layouts& chosen) {
  std::vector<std::string> names;
  for (std::size_t l = 0; l < n.layers.size(); ++l) {
    const net_layer& layer = n.layers[l];
    const auto differs = [&](std::size_t b) {
      return differ(chosen.blobs[b], chosen.layers[l], n.blobs[b].shape);
    };
    if (!is_source(layer) && (std::any_of(layer.bottoms.begin(), layer.bottoms.end(), differs) ||
                              std::any_of(layer.tops.begin(), layer.tops.end(), differs)))
      names.push_back(layer.name);
  }
  return names;
}

using names = std::vector<std::string>;

}  // namespace

TEST_CASE("layouts: in the zoo's nets only the pictures and the first InnerProduct are turned") {
  struct expected {
    std::string folder;
    names nhwc;
    /// Layers on the result of a last pooling, which has one value for each channel.
    names more_of_bf16;
  };
  for (const auto& [folder, turned, more] : std::vector<expected>{
           {"cifar10_quick", {"conv1", "ip1"}, {}},
           {"alexnet", {"conv1", "fc6"}, {}},
           {"vgg16", {"conv1_1", "fc6"}, {}},
           {"googlenet",
            {"conv1/7x7_s2", "loss1/fc", "loss2/fc"},
            {"pool5/drop_7x7_s1", "loss3/classifier"}},
           {"resnet50", {"conv1"}, {"fc1000"}},
           {"inception_v3", {"Conv2d_1a_3x3"}, {"AuxLogits/fc", "Dropout", "fc"}}}) {
    CAPTURE(folder);
    const net n = zoo_net(folder);
    for (const layout inside : {layout::nhwc, layout::nhwc_bf16}) {
      const layouts chosen = choose_layouts(n, inside);
      names wanted = turned;
      if (inside == layout::nhwc_bf16) wanted.insert(wanted.end(), more.begin(), more.end());
      CHECK(borders(n, chosen) == wanted);
      for (std::size_t l = 0; l < n.layers.size(); ++l) {
        if (n.layers[l].type != "Convolution" && n.layers[l].type != "BatchNorm") continue;
        CAPTURE(n.layers[l].name);
        const bool same = !differ(layout::nchw, inside, n.blobs[n.layers[l].tops[0]].shape);
        CHECK((same || chosen.layers[l] == inside));
      }
    }
    const layouts none = choose_layouts(n, layout::nchw);
    CHECK(std::count(none.layers.begin(), none.layers.end(), layout::nchw) ==
          static_cast<std::ptrdiff_t>(n.layers.size()));
    CHECK(borders(n, none).empty());
  }
}

TEST_CASE(
    "layouts: a blob keeps what its first layer gave it, and layers take what comes if they can") {
  hand_net h;
  const auto layer = [&](const std::string& name, const std::string& text,
                         const std::vector<shape>& parameters = {}) {
    h.layer("name: '" + name + "' " + text + " top: '" + name + "'", {{2, 3, 4, 4}}, parameters);
  };
  h.input("x", {2, 3, 4, 4});
  layer("relu", "type: 'ReLU' bottom: 'x'");
  layer(
      "grouped",
      "type: 'Convolution' bottom: 'x' convolution_param { num_output: 3 kernel_size: 1 group: 3 }",
      {{3, 1, 1, 1}, {3}});
  layer("conv",
        "type: 'Convolution' bottom: 'relu' convolution_param { num_output: 3 kernel_size: 1 }",
        {{3, 3, 1, 1}, {3}});
  h.layer("name: 'dropout' type: 'Dropout' bottom: 'conv' top: 'conv'", {});
  layer("sum", "type: 'Eltwise' bottom: 'conv' bottom: 'x'");
  layer("channels", "type: 'Scale' bottom: 'sum'", {{3}});
  layer("rows", "type: 'Scale' bottom: 'sum' scale_param { axis: 2 }", {{4}});
  layer("across", "type: 'LRN' bottom: 'sum'");
  layer("within", "type: 'LRN' bottom: 'sum' lrn_param { norm_region: WITHIN_CHANNEL }");
  layer("drawn", "type: 'Pooling' bottom: 'sum' pooling_param { pool: STOCHASTIC kernel_size: 1 }");
  const layouts chosen = choose_layouts(h.n, layout::nhwc);
  const auto of = [&](const std::string& name) {
    for (std::size_t l = 0; l < h.n.layers.size(); ++l)
      if (h.n.layers[l].name == name) return chosen.layers[l];
    throw std::out_of_range(name);
  };
  for (const char* name : {"conv", "sum", "channels", "across"}) {
    CAPTURE(name);
    CHECK(of(name) == layout::nhwc);
  }
  for (const char* name : {"x", "relu", "grouped", "dropout", "rows", "within", "drawn"}) {
    CAPTURE(name);
    CHECK(of(name) == layout::nchw);
  }
  CHECK(chosen.blobs[h.blob("conv")] == layout::nhwc);  // whatever works in place on it
  CHECK(borders(h.n, chosen) == names{"conv", "dropout", "sum", "rows", "within", "drawn"});
}

TEST_CASE("layouts: blobs that are the same both ways, or change their size, are NCHW") {
  CHECK(differ(layout::nchw, layout::nhwc, {1, 2, 1, 2}));
  CHECK(differ(layout::nchw, layout::nhwc_bf16, {4, 9, 1, 1}));
  CHECK(differ(layout::nhwc, layout::nhwc_bf16, {4, 1, 5, 5}));
  CHECK_FALSE(differ(layout::nchw, layout::nhwc_bf16, {4, 9}));
  for (const shape& s :
       {shape{4, 1, 5, 5}, shape{4, 9, 1, 1}, shape{4, 9, 5}, shape{4, 9, 2, 2, 2}})
    CHECK_FALSE(differ(layout::nchw, layout::nhwc, s));
  hand_net h;
  h.input("x", {4, 3, 5, 5});
  h.input("keep", {4});
  h.layer("name: 'some' type: 'Filter' bottom: 'x' bottom: 'keep' top: 'some'", {{4, 3, 5, 5}});
  h.layer(
      "name: 'conv' type: 'Convolution' bottom: 'some' top: 'conv' convolution_param { num_output: "
      "3 kernel_size: 1 }",
      {{4, 3, 5, 5}}, {{3, 3, 1, 1}, {3}});
  const layouts chosen = choose_layouts(h.n, layout::nhwc);
  CHECK(std::count(chosen.layers.begin(), chosen.layers.end(), layout::nhwc) == 0);
  CHECK(std::count(chosen.blobs.begin(), chosen.blobs.end(), layout::nhwc) == 0);
}

TEST_CASE("layouts: in bfloat16 a net takes less memory, its images half") {
  const net n = zoo_net("cifar10_full", 50);
  const auto bytes_with = [&](device_math math) {
    simulated::configure({});
    plugin_choice choice;
    choice.ordinals = {0};
    choice.math = math;
    poseidon::test::running_net r(n, {}, make_device(choice, make_cpu_device()));
    return static_cast<double>(simulated::counted().device_bytes);
  };
  // The choices of pooling, LRN's sums and the pictures keep their type.
  CHECK(bytes_with(device_math::bf16) < 0.75 * bytes_with(device_math::tf32));
}

TEST_CASE("layouts: to NCHW and back, place by place") {
  const shape s{2, 3, 2, 2};
  std::vector<float> nchw(24), nhwc(24), again(24);
  std::iota(nchw.begin(), nchw.end(), 0.0f);
  from_nchw(s, nchw, layout::nhwc, std::as_writable_bytes(std::span(nhwc)));
  CHECK(std::vector(nhwc.begin(), nhwc.begin() + 6) == std::vector<float>{0, 4, 8, 1, 5, 9});
  CHECK(nhwc[12] == 12);
  to_nchw(s, layout::nhwc, std::as_bytes(std::span(nhwc)), again);
  CHECK(again == nchw);

  std::vector<bfloat16> half(24);
  again.assign(24, -1);
  from_nchw(s, nchw, layout::nhwc_bf16, std::as_writable_bytes(std::span(half)));
  CHECK(to_float(half[1]) == 4);
  to_nchw(s, layout::nhwc_bf16, std::as_bytes(std::span(half)), again);
  CHECK(again == nchw);
  to_nchw({24}, layout::nhwc_bf16, std::as_bytes(std::span(half)), again);  // as they lie
  CHECK(again[1] == 4);

  CHECK_THROWS_AS(
      from_nchw(s, std::vector<float>(23), layout::nhwc, std::as_writable_bytes(std::span(nhwc))),
      const std::invalid_argument&);
  CHECK_THROWS_AS(to_nchw(s, layout::nhwc_bf16, std::as_bytes(std::span(nhwc)), again),
                  const std::invalid_argument&);
}
