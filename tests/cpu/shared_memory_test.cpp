// Blobs that share places in memory: no layer reads values that another blob has left there.
#include "tests/cpu/hand_net.hpp"

#include <string>
#include <utility>
#include <vector>

using namespace poseidon;
using namespace poseidon::test;

namespace {

const shape image{2, 16, 6, 6};

using chain = std::vector<std::string>;

/// Layers of one input and one top each, none of which changes a blob's shape, between two convolutions and a loss.
net chain_of(const chain& layers) {
  hand_net h;
  h.input("x", image);
  h.input("label", {2});
  std::string last = "x";
  const auto add = [&](const std::string& text, const std::vector<shape>& parameters = {}) {
    const std::string top = "y" + std::to_string(h.n.layers.size());
    h.layer("name: '" + top + "' bottom: '" + last + "' top: '" + top + "' " + text, {image},
            parameters);
    last = top;
  };
  const auto convolve = [&] {
    add("type: 'Convolution' convolution_param { num_output: 16 kernel_size: 3 pad: 1 }",
        {{16, 16, 3, 3}, {16}});
  };
  convolve();
  for (const std::string& text : layers) add(text);
  convolve();
  h.layer("name: 'ip' type: 'InnerProduct' bottom: '" + last +
              "' top: 'ip' inner_product_param { num_output: 3 }",
          {{2, 3}}, {{3, 16 * 6 * 6}, {3}});
  h.layer("name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss'", {{}});
  h.n.outputs = {h.blob("loss")};
  return h.n;
}

}  // namespace

TEST_CASE(
    "memory: what a layer's backward() reads is still there, whatever its neighbours let go") {
  const std::string
      max = "type: 'Pooling' pooling_param { pool: MAX kernel_size: 3 stride: 1 pad: 1 }",
      ave = "type: 'Pooling' pooling_param { pool: AVE kernel_size: 3 stride: 1 pad: 1 }",
      drawn = "type: 'Pooling' pooling_param { pool: STOCHASTIC kernel_size: 1 stride: 1 }",
      across = "type: 'LRN' lrn_param { local_size: 5 alpha: 2 }",
      within = "type: 'LRN' lrn_param { norm_region: WITHIN_CHANNEL alpha: 2 local_size: 3 }",
      relu = "type: 'ReLU'", sigmoid = "type: 'Sigmoid'";
  for (const chain& layers : std::vector<chain>{{max, across, max},
                                                {ave, across, ave},
                                                {max, within, ave},
                                                {across, across, across},
                                                {relu, max, sigmoid, ave, across, max, within},
                                                {ave, max, ave, max},
                                                {sigmoid, drawn, sigmoid},
                                                {max, relu, max}}) {
    CAPTURE(layers);
    const net n = chain_of(layers);
    running_net shared(n), own(n, {1, true});
    for (auto* r : {&shared, &own}) {
      r->set("x", noise(r->size(0), 3));
      r->set("label", {0, 2});
      for (int pass = 0; pass < 2; ++pass) {
        r->forward();
        r->backward();
      }
    }
    for (std::size_t p = 0; p < n.parameters.size(); ++p)
      CHECK(deviation(shared.gradient(p), own.gradient(p)) < 1e-5);
  }
}
