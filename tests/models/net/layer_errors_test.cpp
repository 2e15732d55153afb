// A net's errors: the line, the layer, both values and what to do. Each text is
// held here.
#include "tests/models/nets.hpp"

#include <doctest/doctest.h>

using namespace poseidon;
using test::input;
using test::layer;
using test::mistake;

namespace {
const std::string x = input("data", {2, 4, 6, 6});

/// The mistake of one layer "t" over a 2x4x6x6 input, after `net.prototxt:2: layer "t" (Type): `.
std::string said(const std::string& type, const std::string& param) {
  const auto all = mistake(x + layer("t", type, "data", "y", param));
  const auto start = "net.prototxt:2: layer \"t\" (" + type + "): ";
  return all.rfind(start, 0) == 0 ? all.substr(start.size()) : all;
}
}  // namespace

TEST_CASE(
    "layer_errors: an unknown bottom is answered with the nearest blob and the line that makes "
    "it") {
  CHECK(mistake(x + layer("ip", "InnerProduct", "dta", "ip")) ==
        "net.prototxt:2: layer \"ip\" (InnerProduct) takes its bottom \"dta\", which no layer "
        "before it produces. Did you mean \"data\" (line 1)?");
  CHECK(mistake(x + layer("r", "ReLU", "later", "z") + layer("p", "Power", "data", "later")) ==
        "net.prototxt:2: layer \"r\" (ReLU) takes its bottom \"later\", which no layer before it "
        "produces. layer \"p\" (Power) makes it further down (line 3). Move that layer up.");
  CHECK(mistake(x + layer("a", "AbsVal", "data", "label", "include { phase: TEST }") +
                layer("r", "ReLU", "label", "z")) ==
        "net.prototxt:3: layer \"r\" (ReLU) takes its bottom \"label\", which no layer before it "
        "produces. layer \"a\" (AbsVal) (line 2) would make it, but its include or exclude rules "
        "take it away in phase TRAIN.");
  CHECK(mistake(layer("r", "ReLU", "x", "z")) ==
        "net.prototxt:1: layer \"r\" (ReLU) takes its bottom \"x\", which no layer before it "
        "produces. No layer stands before it.");
}

TEST_CASE("layer_errors: two makers of one blob, and in-place work by a layer that cannot") {
  CHECK(mistake(x + layer("a", "AbsVal", "data", "y") + layer("b", "Split", "data", "y")) ==
        "net.prototxt:3: layer \"b\" (Split) makes the top \"y\", which another layer has made "
        "(line 2). Give it another name, or take the blob as bottom too, to work in place.");
  CHECK(mistake(x + layer("ip", "InnerProduct", "data", "data",
                          "inner_product_param { num_output: 3 }")) ==
        "net.prototxt:2: layer \"ip\" (InnerProduct): its top \"data\" is its bottom, but "
        "InnerProduct cannot work in place. Give the top another name.");
}

TEST_CASE(
    "layer_errors: an unknown type is answered with the nearest, a missing one with an example") {
  CHECK(mistake(x + layer("t", "Convolutoin", "data", "y")) ==
        "net.prototxt:2: layer \"t\" has the type \"Convolutoin\", which is none of Caffe's. Did "
        "you mean \"Convolution\"?");
  for (const char* fork : {"ConvolutionDepthwise", "DepthwiseConvolution", "ConvDepthwise",
                           "DepthwiseConv", "Depthwise", "depthwise_conv"})
    CHECK(
        mistake(x + layer("t", fork, "data", "y")) ==
        "net.prototxt:2: layer \"t\" has the type \"" + std::string(fork) +
            "\", which is none of Caffe's. It is a fork's. Write type: \"Convolution\" with group "
            "equal to the number of channels of its bottom, and num_output a multiple of it; the "
            "weights keep their shape.");
  CHECK(mistake(x + "layer { name: \"t\" bottom: \"data\" top: \"y\" }") ==
        "net.prototxt:2: layer \"t\" has no type. Add one, as in type: \"Convolution\".");
}

TEST_CASE("layer_errors: numbers of bottoms, tops, params, weights and flags are given both ways") {
  CHECK(said("Eltwise", "") == "it has 1 bottom, but Eltwise takes at least 2 bottoms.");
  CHECK(said("ReLU", "top: \"z\"") == "it has 2 tops, but ReLU takes 1 top.");
  CHECK(said("Pooling", "top: \"z\" pooling_param { pool: AVE kernel_size: 2 }") ==
        "it has 2 tops, but Pooling takes 1 top.");
  CHECK(
      said("InnerProduct", "param { } param { } param { } inner_product_param { num_output: 3 }") ==
      "it has 3 params, but learns 2 blobs.");
  CHECK(said("Split", "top: \"z\" loss_weight: 1") ==
        "it has 1 loss_weight and 2 tops. Give one per top, or none.");
  CHECK(said("Power", "propagate_down: true propagate_down: false") ==
        "it has 2 propagate_down and 1 bottom. Give one per bottom, or none.");
}

TEST_CASE("layer_errors: shapes that do not fit are both given") {
  const auto pool = layer("p", "Pooling", "data", "p", "pooling_param { kernel_size: 2 }");
  const auto pair = [&](const std::string& type) {
    return mistake(x + pool + "layer { name: \"t\" type: \"" + type +
                   "\" bottom: \"data\" bottom: \"p\" top: \"y\" }");
  };
  // The blobs that clash are the copies that Split made of "data".
  CHECK(pair("Eltwise") ==
        "net.prototxt:3: layer \"t\" (Eltwise): its bottoms \"data\" 2x4x6x6 and "
        "\"p\" 2x4x5x5 differ. All of them must have one shape.");
  CHECK(pair("Concat") ==
        "net.prototxt:3: layer \"t\" (Concat): its bottoms \"data\" 2x4x6x6 and "
        "\"p\" 2x4x5x5 differ elsewhere than in axis 1, along which they are joined.");
  const auto labels = input("l", {3}) + layer("ip", "InnerProduct", "data", "ip",
                                              "inner_product_param { num_output: 5 }");
  CHECK(mistake(x + labels +
                "layer { name: \"t\" type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"l\" top: "
                "\"y\" }") ==
        "net.prototxt:4: layer \"t\" (SoftmaxWithLoss): its bottoms \"ip\" 2x5 and \"l\" 3 must "
        "have the same first dimension, one label per sample.");
  const auto two = input("l", {2});
  CHECK(mistake(x + two +
                "layer { name: \"t\" type: \"SoftmaxWithLoss\" bottom: \"data\" bottom: \"l\" top: "
                "\"y\" }") ==
        "net.prototxt:3: layer \"t\" (SoftmaxWithLoss): its bottom \"data\" 2x4x6x6 needs 72 "
        "labels (all axes but axis 1, the classes), but \"l\" 2 has 2.");
  CHECK(mistake(x + two +
                layer("ip", "InnerProduct", "data", "ip", "inner_product_param { num_output: 4 }") +
                "layer { name: \"t\" type: \"Accuracy\" bottom: \"ip\" bottom: \"l\" top: \"y\" "
                "accuracy_param { top_k: 5 } }") ==
        "net.prototxt:4: layer \"t\" (Accuracy): top_k is 5, its bottom \"ip\" 2x4 has 4 classes.");
}

TEST_CASE("layer_errors: windows that cannot be") {
  CHECK(said("Convolution", "convolution_param { num_output: 3 }") ==
        "kernel_size is given 0 times for 2 spatial dimensions. Give it once, or once per "
        "dimension.");
  CHECK(said("Convolution", "convolution_param { num_output: 6 kernel_size: 3 group: 3 }") ==
        "group is 3, which does not divide the 4 channels of its bottom \"data\" 2x4x6x6.");
  CHECK(said("Convolution", "convolution_param { num_output: 5 kernel_size: 3 group: 2 }") ==
        "num_output is 5, which its group of 2 does not divide.");
  CHECK(said("Convolution", "convolution_param { num_output: 5 kernel_size: 7 }") ==
        "its window of 7 is larger than the padded input of 6 (bottom \"data\" 2x4x6x6).");
  CHECK(said("Convolution", "convolution_param { num_output: 5 kernel_size: 3 stride: 0 }") ==
        "kernel_size, stride and dilation must be above 0, one of them is 0.");
  CHECK(said("Convolution", "convolution_param { num_output: 5 kernel_size: 3 group: 0 }")
            .find("group is 0") == 0);
  CHECK(said("Pooling", "pooling_param { kernel_size: 8 stride: 2 }") ==
        "its window of 8 is larger than the padded input of 6 (bottom \"data\" 2x4x6x6).");
  CHECK(said("Pooling", "pooling_param { kernel_size: 7 stride: 7 round_mode: FLOOR }") ==
        "its window of 7 is larger than the padded input of 6 (bottom \"data\" 2x4x6x6).");
  CHECK(said("Pooling", "pooling_param { kernel_size: 2 pad: 2 }") ==
        "pad 2 must be smaller than the kernel of 2.");
  CHECK(said("Pooling", "pooling_param { kernel_size: 2 kernel_h: 3 kernel_w: 3 }") ==
        "both kernel_size and kernel_h/kernel_w are given. Keep one of them.");
  CHECK(said("Pooling", "pooling_param { kernel_size: 2 stride: 0 }") == "stride must be above 0.");
  CHECK(said("LRN", "lrn_param { local_size: 4 }") ==
        "local_size is 4, it must be odd: the window has a middle.");
}

TEST_CASE("layer_errors: axes, slices and counts") {
  CHECK(said("Softmax", "softmax_param { axis: 4 }") ==
        "axis 4 is out of range: its bottom \"data\" 2x4x6x6 has 4 axes, counted from 0.");
  CHECK(said("Reshape", "reshape_param { shape { dim: 2 dim: 5 dim: -1 } }") ==
        "its bottom \"data\" 2x4x6x6 has 288 values, which do not fit the shape with an inferred "
        "axis of 10 values.");
  CHECK(said("Slice", "top: \"b\" top: \"c\"") ==
        "axis 1 of its bottom \"data\" 2x4x6x6 does not divide evenly into 3 tops. Give "
        "slice_point, one fewer than tops.");
  CHECK(said("Slice", "top: \"b\" top: \"c\" slice_param { slice_point: 2 slice_point: 1 }") ==
        "its slice_points must rise and stay below 4, the extent of axis 1 of its bottom \"data\" "
        "2x4x6x6; 1 follows 2.");
  CHECK(said("InnerProduct",
             "inner_product_param { num_output: 3 weight_filler { type: \"gausian\" } }") ==
        "it has a filler of the type \"gausian\", which is none of Caffe's. Did you mean "
        "\"gaussian\"?");
  CHECK(
      said("BatchNorm", "param { lr_mult: 1 }").find("a param has lr_mult 1, but the statistics") ==
      0);
  CHECK(mistake(input("x", {2, 0})) ==
        "net.prototxt:1: layer \"x\" (Input): its shape 2x0 has an extent below 1.");
  CHECK(mistake("layer { name: \"x\" type: \"Input\" top: \"x\" input_param { shape { dim: "
                "4294967296 dim: 4294967296 } } }") ==
        "net.prototxt:1: layer \"x\" (Input): its top would have the shape 4294967296x4294967296, "
        "more than 2^31 values.");
  CHECK(said("Tile", "tile_param { tiles: 2000000000 }").find("more than 2^31 values") !=
        std::string::npos);
}

TEST_CASE(
    "layer_errors: shared parameters must agree, and layers that learn need names of their own") {
  const auto ip = [](const std::string& name, const std::string& param, int out) {
    return layer(name, "InnerProduct", "data", name,
                 param + " inner_product_param { num_output: " + std::to_string(out) +
                     " bias_term: false }");
  };
  CHECK(mistake(x + ip("a", "param { name: \"w\" }", 3) + ip("t", "param { name: \"w\" }", 4)) ==
        "net.prototxt:3: layer \"t\" (InnerProduct): it shares parameter \"w\" (slot 0), which "
        "layer \"a\" (line 2) owns: there the shape is 3x144, here 4x144. They must be the same; "
        "share_mode: PERMISSIVE compares only the number of values.");
  CHECK(mistake(x + ip("a", "param { name: \"w\" lr_mult: 1 }", 3) +
                ip("t", "param { name: \"w\" lr_mult: 2 }", 3)) ==
        "net.prototxt:3: layer \"t\" (InnerProduct): it shares parameter \"w\" (slot 0), which "
        "layer \"a\" (line 2) owns: there lr_mult is 1, here 2. Give the same, or give it once.");
  CHECK(mistake(x +
                layer("a", "InnerProduct", "data", "u", "inner_product_param { num_output: 2 }") +
                layer("a", "InnerProduct", "data", "v", "inner_product_param { num_output: 2 }"))
            .find("net.prototxt:3: layer \"a\" (InnerProduct): another layer with parameters has "
                  "this name (line 2)") == 0);
}

TEST_CASE("layer_errors: a batch that does not divide among the replicas") {
  build_options options;
  options.split_batch = 2;
  CHECK_THROWS_WITH_AS((void)build_net(parse_net(input("x", {65, 3}), "f"), options),
                       "f:1: layer \"x\" (Input): its batch 65x3 does not divide among 2 replicas. "
                       "Choose a batch size that 2 divides.",
                       spec_error);
}

TEST_CASE("layer_errors: what would cost more than a machine has is refused with both values") {
  CHECK(said("LRN", "lrn_param { local_size: 100000001 }") ==
        "local_size is 100000001, at most 9999 is possible.");
  std::string dims, bottoms, chain;
  for (int i = 0; i < 33; ++i) dims += "dim: 1 ";
  CHECK(mistake("layer { name: 't' type: 'DummyData' top: 'y' dummy_data_param { shape { " + dims +
                "} } }")
            .find("its top would have 33 axes, at most 32 are possible.") != std::string::npos);
  for (int i = 0; i < 10001; ++i) bottoms += "bottom: 'data' ";
  CHECK(mistake(x + "layer { name: 't' type: 'Concat' top: 'y' " + bottoms + "}")
            .find("bottoms, at most 10000 are possible.") != std::string::npos);
  for (int i = 0; i < 20001; ++i)
    chain += "layer { name: 'r' type: 'ReLU' bottom: 'data' top: 'data' }\n";
  CHECK(mistake(x + chain).find("layers, at most 20000 are possible.") != std::string::npos);
}
