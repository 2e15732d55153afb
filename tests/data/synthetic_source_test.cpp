// Synthetic samples have the shape that the real ones would have, and depend on nothing but their number.
#include "data/synthetic_source.hpp"

#include "data/batch_filler.hpp"
#include "tests/data/made_files.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace poseidon;
using namespace poseidon::test;

namespace {

source_options synthetic(shape image = {}) {
  source_options o;
  o.seed = 7;
  o.synthetic = std::move(image);
  return o;
}

::caffe::LayerParameter without_source(int crop = 0) {
  auto layer = data_layer("nowhere");
  layer.clear_top();
  layer.add_top("data");
  layer.add_top("label");
  if (crop > 0) layer.mutable_transform_param()->set_crop_size(crop);
  return layer;
}

}  // namespace

TEST_CASE("synthetic: the crop, the option, or the source says the shape; nothing else is needed") {
  const auto shapes = [](const ::caffe::LayerParameter& layer, const source_options& options) {
    return open_source(layer, here(), options)->sample_shapes();
  };
  CHECK(shapes(without_source(227), synthetic()) == std::vector<shape>{{3, 227, 227}, {}});
  CHECK(shapes(without_source(), synthetic({1, 28, 28})) == std::vector<shape>{{1, 28, 28}, {}});
  CHECK(shapes(without_source(20), synthetic({1, 28, 28})) == std::vector<shape>{{1, 20, 20}, {}});
  temporary_folder folder;
  make_image_lmdb(folder / "db", 3, {2, 5, 6});
  CHECK(shapes(data_layer((folder / "db").string()), synthetic()).front() == shape{2, 5, 6});
}

TEST_CASE("synthetic: what is missing or does not fit is said with its remedy") {
  const auto text = complaint([] { (void)open_source(without_source(), here(), synthetic()); });
  CHECK_MESSAGE(text.find("--synthetic CxHxW") != std::string::npos, text);
  CHECK_MESSAGE(text.rfind("net.prototxt:7: layer \"data\"", 0) == 0, text);
  CHECK(complaint([] {
          (void)open_source(without_source(30), here(), synthetic({1, 28, 28}));
        }).find("crop_size 30 does not fit into --synthetic 1x28x28") != std::string::npos);
  CHECK(parse_sample_shape("3x224x200") == shape{3, 224, 200});
  CHECK(parse_sample_shape("").empty());
  for (const auto* wrong : {"3x", "axb", "0x2x2", "3,2,2", "-1x2x2"})
    CHECK_THROWS_AS((void)parse_sample_shape(wrong), spec_error);
}

TEST_CASE(
    "synthetic: sample n has its values wherever and whenever it is made, scaled as the layer "
    "says") {
  auto layer = without_source(8);
  layer.mutable_transform_param()->set_scale(0.5f);
  const auto one = open_source(layer, here(), synthetic());
  const auto other = open_source(layer, here(), synthetic());
  batch a, b;
  fill_batch(*one, 5, 4, a);
  fill_batch(*other, 7, 2, b);
  const auto size = std::size_t{3 * 8 * 8};
  CHECK(std::equal(b.tops[0].begin(), b.tops[0].end(), a.tops[0].begin() + 2 * size));
  CHECK(a.tops[1][2] == b.tops[1][0]);
  CHECK_FALSE(std::equal(a.tops[0].begin(), a.tops[0].begin() + size, a.tops[0].begin() + size));
  const auto [low, high] = std::minmax_element(a.tops[0].begin(), a.tops[0].end());
  CHECK(*low >= -64);
  CHECK(*low < -32);
  CHECK(*high > 32);
  CHECK(*high < 64);
  for (const float label : a.tops[1]) CHECK((label == 0 || label == 1));
}

TEST_CASE("synthetic: an Input layer's tops share the batch axis that its shapes say") {
  ::caffe::LayerParameter layer;
  layer.set_name("data");
  layer.set_type("Input");
  layer.add_top("data");
  layer.add_top("label");
  auto& p = *layer.mutable_input_param();
  for (const int dim : {4, 3, 2}) p.add_shape()->add_dim(dim);
  p.mutable_shape(0)->add_dim(9);
  p.mutable_shape()->RemoveLast();
  CHECK(complaint([&] { (void)batch_size(layer, here()); }).find("a batch of 3") !=
        std::string::npos);
  p.mutable_shape(1)->set_dim(0, 4);
  CHECK(batch_size(layer, here()) == 4);
  CHECK(open_source(layer, here(), synthetic())->sample_shapes() == std::vector<shape>{{9}, {}});
}
