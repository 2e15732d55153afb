// Which layers and blobs of a net have NHWC inside, and where that ends.
#include "gpu/layout.hpp"
#include "models/net_builder.hpp"
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

net zoo_net(const std::string& folder) {
  build_options options;
  options.sources = [](const ::caffe::LayerParameter& l, const spec_position&) {
    const std::int64_t crop = l.transform_param().crop_size(), side = crop != 0 ? crop : 32;
    return std::vector<shape>{{2, 3, side, side}, {2}};
  };
  return build_net(read_net("models/zoo/" + folder + "/train_val.prototxt"), options);
}

/// Names of the layers that get copies of some blob in another layout.
std::vector<std::string> borders(const net& n, const layouts& chosen) {
  std::vector<std::string> names;
  for (std::size_t l = 0; l < n.layers.size(); ++l) {
    const net_layer& layer = n.layers[l];
    const auto differs = [&](std::size_t b) {
      return has_layouts(n.blobs[b].shape) && chosen.blobs[b] != chosen.layers[l];
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
  for (const auto& [folder, wanted] : std::vector<std::pair<std::string, names>>{
           {"cifar10_quick", {"conv1", "ip1"}},
           {"alexnet", {"conv1", "fc6"}},
           {"vgg16", {"conv1_1", "fc6"}},
           {"googlenet", {"conv1/7x7_s2", "loss1/fc", "loss2/fc"}},
           {"resnet50", {"conv1"}},
           {"inception_v3", {"Conv2d_1a_3x3"}}}) {
    CAPTURE(folder);
    const net n = zoo_net(folder);
    const layouts chosen = choose_layouts(n, layout::nhwc);
    CHECK(borders(n, chosen) == wanted);
    for (std::size_t l = 0; l < n.layers.size(); ++l) {
      if (n.layers[l].type != "Convolution" && n.layers[l].type != "BatchNorm") continue;
      CAPTURE(n.layers[l].name);
      const bool same = !has_layouts(n.blobs[n.layers[l].tops[0]].shape);
      CHECK((same || chosen.layers[l] == layout::nhwc));
    }
    const layouts none = choose_layouts(n, layout::nchw);
    CHECK(std::count(none.layers.begin(), none.layers.end(), layout::nhwc) == 0);
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
  CHECK(has_layouts({1, 2, 1, 2}));
  for (const shape& s :
       {shape{4, 1, 5, 5}, shape{4, 9, 1, 1}, shape{4, 9, 5}, shape{4, 9, 2, 2, 2}})
    CHECK_FALSE(has_layouts(s));
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

TEST_CASE("layouts: to NCHW and back, place by place") {
  const shape s{2, 3, 2, 2};
  std::vector<float> nchw(24), nhwc(24), again(24);
  std::iota(nchw.begin(), nchw.end(), 0.0f);
  to_nhwc(s, nchw, nhwc);
  CHECK(std::vector(nhwc.begin(), nhwc.begin() + 6) == std::vector<float>{0, 4, 8, 1, 5, 9});
  CHECK(nhwc[12] == 12);
  to_nchw(s, nhwc, again);
  CHECK(again == nchw);
  CHECK_THROWS_AS(to_nhwc(s, std::vector<float>(23), nhwc), const std::invalid_argument&);
}
