// Older nets become today's. The whole translation table is held to Caffe's by poseidon-oracle
// (formats/).
#include "models/spec/upgrade.hpp"

#include "models/spec/net_file.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

TEST_CASE("upgrade: a V1 layer keeps its fields, and its multipliers become params") {
  const auto file = parse_net(
      "layers { name: \"c\" type: CONVOLUTION bottom: \"d\" top: \"c\" blobs_lr: 1 blobs_lr: 2 "
      "weight_decay: 3\n"
      "  param: \"w\" blob_share_mode: PERMISSIVE convolution_param { num_output: 4 } include { "
      "phase: TEST } }\n"
      "layers { name: \"r\" type: RELU bottom: \"c\" top: \"c\" }",
      "v1.prototxt");
  REQUIRE(file.spec.layer_size() == 2);
  CHECK(file.spec.layers_size() == 0);
  const auto& c = file.spec.layer(0);
  CHECK(c.type() == "Convolution");
  REQUIRE(c.param_size() == 2);
  CHECK(c.param(0).name() == "w");
  CHECK(c.param(0).share_mode() == ::caffe::ParamSpec::PERMISSIVE);
  CHECK(c.param(0).decay_mult() == 3);
  CHECK(c.param(1).lr_mult() == 2);
  CHECK_FALSE(c.param(1).has_decay_mult());
  CHECK(c.convolution_param().num_output() == 4);
  CHECK(c.include(0).phase() == ::caffe::TEST);
  CHECK(file.layer_places[1].line == 3);
}

TEST_CASE("upgrade: transformation fields of a V1 data layer move to transform_param") {
  const auto file = parse_net(
      "layers { type: DATA data_param { source: \"s\" scale: 0.5 crop_size: 3 mirror: true } }",
      "v1");
  const auto& layer = file.spec.layer(0);
  CHECK(layer.transform_param().scale() == 0.5f);
  CHECK(layer.transform_param().crop_size() == 3);
  CHECK(layer.transform_param().mirror());
  CHECK_FALSE(layer.data_param().has_scale());
  CHECK(layer.data_param().source() == "s");
}

TEST_CASE("upgrade: input fields become one Input layer in front, placed where the first stood") {
  const auto file = parse_net(
      "name: \"n\"\ninput: \"a\"\ninput: \"b\" input_dim: [1, 2, 3, 4, 5, 6, 7, 8]\nlayer { name: "
      "\"x\" }",
      "i");
  REQUIRE(file.spec.layer_size() == 2);
  CHECK(file.spec.layer(0).type() == "Input");
  CHECK(file.spec.layer(0).top(1) == "b");
  CHECK(file.spec.layer(0).input_param().shape(1).dim(3) == 8);
  CHECK(file.layer_places[0].line == 2);
  CHECK(file.layer_places[1].line == 4);
  CHECK(file.spec.input_size() == 0);
}

TEST_CASE("upgrade: contradictions are refused") {
  CHECK_THROWS_WITH_AS((void)parse_net("input: \"a\" input_dim: 1 input_dim: 2", "f"),
                       "f:1: the net has 1 input but 2 input_dim. Give one input_shape, or four "
                       "input_dim, per input.",
                       spec_error);
  CHECK_THROWS_WITH_AS(
      (void)parse_net("\nlayers { type: RELU } layer { type: \"ReLU\" }", "f"),
      "f:2: the net has both layer { } (V2) and layers { } (V1). Write all of them as layer { }.",
      spec_error);
}

TEST_CASE("upgrade: the three multipliers of an old BatchNorm become 0") {
  const auto file = parse_net(
      "layer { type: \"BatchNorm\" param { lr_mult: 1 } param { } param { name: \"s\" } }", "f");
  for (const auto& param : file.spec.layer(0).param()) {
    CHECK(param.lr_mult() == 0);
    CHECK(param.decay_mult() == 0);
  }
  CHECK(file.spec.layer(0).param(2).name() == "s");
}
