// The shapes that each family of layers gives, where Caffe's rule is not the obvious one. Every
// single-layer case of the reference set is held to its shapes besides
// (layer_shapes_oracle_test.cpp).
#include "tests/models/nets.hpp"

#include <doctest/doctest.h>

using namespace poseidon;
using test::input;
using test::layer;

namespace {

/// Shape of the top of one layer over an input of that shape.
std::string shape_after(const std::vector<int>& in, const std::string& type,
                        const std::string& param = {}) {
  const auto n = test::build(input("x", in) + layer("t", type, "x", "y", param));
  return to_string(test::top_of(n, "t"));
}

shape parameter(const std::vector<int>& in, const std::string& type, const std::string& param,
                std::size_t slot = 0) {
  const auto n = test::build(input("x", in) + layer("t", type, "x", "y", param));
  return n.parameters.at(slot).shape;
}

}  // namespace

TEST_CASE("layer_shapes: convolution rounds down, counts pad twice and dilates its reach") {
  CHECK(shape_after({2, 3, 28, 28}, "Convolution",
                    "convolution_param { num_output: 4 kernel_size: 5 }") == "2x4x24x24");
  CHECK(shape_after({2, 3, 8, 7}, "Convolution",
                    "convolution_param { num_output: 4 kernel_size: 3 stride: 2 pad: 1 }") ==
        "2x4x4x4");
  CHECK(shape_after({2, 3, 9, 9}, "Convolution",
                    "convolution_param { num_output: 4 kernel_size: 3 dilation: 2 }") == "2x4x5x5");
  CHECK(shape_after({2, 3, 9, 8, 7}, "Convolution",
                    "convolution_param { num_output: 4 kernel_size: [3, 2, 1] }") == "2x4x7x7x7");
  CHECK(parameter({2, 6, 5, 5}, "Convolution",
                  "convolution_param { num_output: 4 kernel_size: 3 group: 2 }") ==
        shape{4, 3, 3, 3});
  CHECK(parameter({2, 6, 5, 5}, "Deconvolution",
                  "convolution_param { num_output: 4 kernel_size: 3 group: 2 }") ==
        shape{6, 2, 3, 3});
}

TEST_CASE(
    "layer_shapes: pooling rounds up, and with a pad drops a window that begins beyond the image") {
  CHECK(shape_after({1, 1, 32, 32}, "Pooling", "pooling_param { kernel_size: 3 stride: 2 }") ==
        "1x1x16x16");
  CHECK(shape_after({1, 1, 32, 32}, "Pooling",
                    "pooling_param { kernel_size: 3 stride: 2 round_mode: FLOOR }") == "1x1x15x15");
  CHECK(shape_after({1, 1, 4, 4}, "Pooling", "pooling_param { kernel_size: 2 stride: 2 pad: 1 }") ==
        "1x1x3x3");
  CHECK(shape_after({1, 1, 5, 5}, "Pooling", "pooling_param { kernel_size: 2 stride: 3 pad: 1 }") ==
        "1x1x2x2");
  CHECK(shape_after({1, 1, 6, 6}, "Pooling", "pooling_param { kernel_size: 2 stride: 6 pad: 1 }") ==
        "1x1x2x2");
  CHECK(shape_after({2, 3, 7, 5}, "Pooling", "pooling_param { global_pooling: true }") ==
        "2x3x1x1");
  // Also where the only window is larger than the image, as a net made for larger images may have it.
  CHECK(shape_after({2, 3, 6, 5}, "Pooling", "pooling_param { kernel_size: 7 stride: 7 }") ==
        "2x3x1x1");
}

TEST_CASE("layer_shapes: an inner product swallows the axes from its own on") {
  CHECK(shape_after({2, 3, 4, 5}, "InnerProduct", "inner_product_param { num_output: 7 }") ==
        "2x7");
  CHECK(shape_after({2, 3, 4, 5}, "InnerProduct",
                    "inner_product_param { num_output: 7 axis: -1 }") == "2x3x4x7");
  CHECK(parameter({2, 3, 4}, "InnerProduct", "inner_product_param { num_output: 7 }") ==
        shape{7, 12});
  CHECK(parameter({2, 3, 4}, "InnerProduct",
                  "inner_product_param { num_output: 7 transpose: true }") == shape{12, 7});
}

TEST_CASE("layer_shapes: scale and bias learn the axes that they span, a scalar if none") {
  CHECK(parameter({2, 3, 4, 5}, "Scale", "") == shape{3});
  CHECK(parameter({2, 3, 4, 5}, "Scale", "scale_param { axis: 1 num_axes: -1 }") == shape{3, 4, 5});
  CHECK(parameter({2, 3, 4, 5}, "Scale", "scale_param { num_axes: 0 }") == shape{});
  CHECK(parameter({2, 3, 4, 5}, "Scale", "scale_param { bias_term: true num_axes: 2 }", 1) ==
        shape{3, 4});
  CHECK(test::build(input("x", {2, 3}) + layer("t", "Scale", "x", "y"))
            .parameters[0]
            .filler.value() == 1);
}

TEST_CASE(
    "layer_shapes: reshape copies at 0 and infers at -1, over the axes that it is told to "
    "replace") {
  CHECK(shape_after({2, 8, 3}, "Reshape", "reshape_param { shape { dim: 0 dim: 4 dim: -1 } }") ==
        "2x4x6");
  CHECK(shape_after({2, 8, 3}, "Reshape",
                    "reshape_param { shape { dim: 2 dim: -1 } axis: 1 num_axes: 1 }") == "2x2x4x3");
  CHECK(shape_after({2, 8}, "Reshape", "reshape_param { shape { dim: 1 } axis: -1 num_axes: 0 }") ==
        "2x8x1");
  CHECK(shape_after({2, 3, 4, 5}, "Flatten", "") == "2x60");
  CHECK(shape_after({2, 3, 4, 5}, "Flatten", "flatten_param { axis: -3 end_axis: -2 }") ==
        "2x12x5");
}

TEST_CASE("layer_shapes: slices end where they are told, or are even") {
  const auto n = test::build(input("x", {2, 6, 3}) +
                             "layer { name: \"s\" type: \"Slice\" bottom: \"x\" top: \"a\" top: "
                             "\"b\" slice_param { slice_point: 4 } }");
  CHECK(to_string(test::top_of(n, "s", 0)) == "2x4x3");
  CHECK(to_string(test::top_of(n, "s", 1)) == "2x2x3");
}

TEST_CASE(
    "layer_shapes: losses are scalars, with a weight of 1 and a top even where none is written") {
  const auto n =
      test::build(input("x", {4, 3}) + input("l", {4}) +
                  "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"x\" bottom: \"l\" }");
  const auto& loss = test::named(n, "loss");
  REQUIRE(loss.tops.size() == 1);
  CHECK(n.blobs[loss.tops[0]].name == "(automatic)");
  CHECK(n.blobs[loss.tops[0]].shape.empty());
  CHECK(loss.loss_weights[0] == 1);
  CHECK(n.outputs.empty());
}

TEST_CASE(
    "layer_shapes: a type of Caffe's that we do not read is told apart from one that nobody "
    "knows") {
  const auto text = input("x", {2, 3}) + input("c", {2, 3}) +
                    "layer { name: \"r\" type: \"LSTM\" bottom: \"x\" bottom: \"c\" top: \"y\" }";
  try {
    (void)test::build(text);
    FAIL("an LSTM was built");
  } catch (const unsupported_layer& e) {
    CHECK(e.type == "LSTM");
    CHECK(std::string(e.what()) ==
          "net.prototxt:3: layer \"r\" (LSTM): Poseidon has no layers of this type.");
  }
}
