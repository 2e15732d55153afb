#include "data/source.hpp"

#include "data/batch_filler.hpp"
#include "data/image_store.hpp"
#include "data/mean_file.hpp"
#include "tests/data/made_files.hpp"

#include <doctest/doctest.h>

#include <thread>

using namespace poseidon;
using namespace poseidon::test;

namespace {
bool begins(const std::string& text, const std::string& with) {
  return text.rfind(with, 0) == 0;
}
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
}  // namespace

TEST_CASE("source: relative names start at the net's folder, or at the data root if there is one") {
  temporary_folder folder;
  std::filesystem::create_directory(folder / "a");
  std::filesystem::create_directory(folder / "b");
  make_image_lmdb(folder / "a/db", 3, {1, 2, 2});
  make_image_lmdb(folder / "b/db", 5, {1, 2, 2});
  write_mean(folder / "b/mean", {{1, 2, 2}, {0, 0, 0, 0}});
  source_options options;
  options.directory = folder / "a";
  CHECK(open_source(data_layer("db"), here(), options)->size() == 3);
  options.data_root = folder / "b";
  CHECK(open_source(data_layer("db"), here(), options)->size() == 5);
  CHECK(open_source(data_layer((folder / "a/db").string()), here(), options)->size() == 3);
  auto with_mean = data_layer("db");
  with_mean.mutable_transform_param()->set_mean_file("mean");
  CHECK_NOTHROW((void)open_source(with_mean, here(), options));
}

TEST_CASE("source: without any folder, relative names start at the working directory") {
  const auto text = complaint([] { (void)open_source(data_layer("no/db"), here(), {}); });
  CHECK_MESSAGE(has(text, std::filesystem::current_path().string()), text);
}

TEST_CASE("source: sources that share what is opened read a file once, others each for itself") {
  temporary_folder folder;
  const auto images = folder / "x-images-idx3-ubyte";
  write_file(images, idx_images(4, 2, 2));
  write_file(folder / "x-labels-idx1-ubyte", idx_labels(4));
  source_options shared;
  shared.opened = std::make_shared<opened_images>();
  CHECK(open_source(data_layer(images.string()), here(), shared)->size() == 4);
  write_file(images, "no images any more");
  CHECK(open_source(data_layer(images.string()), here(), shared)->size() == 4);
  CHECK_THROWS_AS((void)open_source(data_layer(images.string()), here(), {}), spec_error);
}

TEST_CASE("source: every mistake names file, line and layer") {
  temporary_folder folder;
  make_image_lmdb(folder / "db", 3, {1, 28, 28});
  source_options options;
  options.directory = folder.path();
  const auto refused = [&](const ::caffe::LayerParameter& layer) {
    const auto text = complaint([&] { (void)open_source(layer, here(), options); });
    CHECK_MESSAGE(begins(text, "net.prototxt:7: layer \"data\" (" + layer.type() + "): "), text);
    CHECK_THROWS_AS((void)open_source(layer, here(), options), spec_error);
    return text;
  };
  const auto missing = refused(data_layer("no_such_lmdb"));
  CHECK(has(missing, "source \"no_such_lmdb\""));
  CHECK(has(missing, "no such file or folder"));
  CHECK(has(missing, "Relative names start at \"" + folder.path().string()));
  CHECK(has(missing, "poseidon-data makes data sets"));
  CHECK(has(refused(data_layer("")), "no data_param.source"));
  std::filesystem::create_directory(folder / "empty");
  CHECK(has(refused(data_layer("empty")), "without data.mdb"));
  std::filesystem::create_directory(folder / "level");
  write_file(folder / "level/CURRENT", "");
  CHECK(has(refused(data_layer("level")), "level: a LevelDB that cannot be opened"));

  auto layer = data_layer("db");
  layer.mutable_transform_param()->set_crop_size(29);
  CHECK(has(refused(layer), "crop_size 29 is larger than the images (1x28x28)"));
  layer = data_layer("db");
  layer.mutable_transform_param()->set_mean_file("no_such_mean.binaryproto");
  CHECK(has(refused(layer), "no_such_mean.binaryproto: cannot open"));
  write_mean(folder / "mean", {{3, 24, 20}, std::vector<float>(1440)});
  layer.mutable_transform_param()->set_mean_file("mean");
  CHECK(has(refused(layer), "mean_file \"mean\" is 3x24x20, the images are 1x28x28"));
  layer.mutable_transform_param()->add_mean_value(3);
  CHECK(has(refused(layer), "mean_file \"mean\" and 1 mean_value"));
  layer.mutable_transform_param()->clear_mean_file();
  layer.mutable_transform_param()->add_mean_value(4);
  CHECK(has(refused(layer), "2 mean_value for images of 1 channel."));
  layer = data_layer("db");
  layer.add_top("third");
  CHECK(has(refused(layer), "has 3 tops"));
  layer = data_layer("db");
  layer.set_type("WindowData");
  CHECK(has(refused(layer), "windows of images are not cut here. Cut them beforehand"));
}

TEST_CASE("source: batch_size 0 is refused, and shapes for the net have the batch in front") {
  temporary_folder folder;
  make_image_lmdb(folder / "db", 3, {3, 8, 9});
  auto layer = data_layer((folder / "db").string());
  layer.mutable_transform_param()->set_crop_size(5);
  CHECK(shapes_from_sources({})(layer, here()) == std::vector<shape>{{4, 3, 5, 5}, {4}});
  layer.mutable_top()->RemoveLast();
  CHECK(shapes_from_sources({})(layer, here()) == std::vector<shape>{{4, 3, 5, 5}});
  layer.mutable_data_param()->set_batch_size(0);
  CHECK(has(complaint([&] { (void)batch_size(layer, here()); }), "batch_size is 0"));
}

TEST_CASE("source: threads that fill at once get what one alone gets") {
  temporary_folder folder;
  make_image_lmdb(folder / "db", 50, {1, 12, 12});
  auto layer = data_layer((folder / "db").string());
  layer.mutable_transform_param()->set_crop_size(9);
  layer.mutable_transform_param()->set_mirror(true);
  const auto source = open_source(layer, here(), {});
  batch alone;
  fill_batch(*source, 0, 200, alone);
  std::vector<batch> together(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] { fill_batch(*source, 50 * i, 50, together[i]); });
  for (auto& t : threads) t.join();
  host_values joined;
  for (const auto& b : together) joined.insert(joined.end(), b.tops[0].begin(), b.tops[0].end());
  CHECK(joined == alone.tops[0]);
}

TEST_CASE("dummy: constants as given, one shape or filler for all tops or one each") {
  ::caffe::LayerParameter layer;
  layer.set_name("data");
  layer.set_type("DummyData");
  layer.add_top("a");
  layer.add_top("b");
  auto* p = layer.mutable_dummy_data_param();
  for (const int extent : {4, 3, 2}) p->add_shape()->add_dim(extent);
  CHECK(has(complaint([&] { (void)open_source(layer, here(), {}); }), "has 3 shapes for 2 tops"));
  p->clear_shape();
  for (const int extent : {4, 3, 2})
    (p->shape_size() ? p->mutable_shape(0) : p->add_shape())->add_dim(extent);
  p->add_shape()->add_dim(4);
  p->add_data_filler()->set_value(1.5f);
  p->add_data_filler()->set_value(-2);
  CHECK(batch_size(layer, here()) == 4);
  batch b;
  fill_batch(*open_source(layer, here(), {}), 7, 4, b);
  CHECK(b.tops[0] == host_values(24, 1.5f));
  CHECK(b.tops[1] == host_values(4, -2));
  p->mutable_shape(1)->set_dim(0, 5);
  CHECK(has(complaint([&] { (void)open_source(layer, here(), {}); }),
            "has 5 samples, top \"a\" has 4"));
  p->clear_shape();
  p->add_num(2), p->add_channels(1), p->add_height(1);
  CHECK(has(complaint([&] { (void)open_source(layer, here(), {}); }), "1 height, 0 width"));
  p->add_width(0);
  CHECK(has(complaint([&] { (void)open_source(layer, here(), {}); }), "2x1x1x0"));
}

TEST_CASE(
    "dummy: random samples differ, depend on seed and sample alone, and have the filler's range") {
  ::caffe::LayerParameter layer;
  layer.set_name("data");
  layer.set_type("DummyData");
  layer.add_top("a");
  auto* p = layer.mutable_dummy_data_param();
  for (const int extent : {4, 50})
    (p->shape_size() ? p->mutable_shape(0) : p->add_shape())->add_dim(extent);
  auto* filler = p->add_data_filler();
  filler->set_type("uniform");
  filler->set_min(2);
  filler->set_max(3);
  source_options options;
  options.seed = 5;
  batch b, again, other;
  fill_batch(*open_source(layer, here(), options), 10, 4, b);
  fill_batch(*open_source(layer, here(), options), 11, 4, again);
  CHECK(std::equal(b.tops[0].begin() + 50, b.tops[0].end(), again.tops[0].begin()));
  CHECK_FALSE(std::equal(b.tops[0].begin(), b.tops[0].begin() + 50, b.tops[0].begin() + 50));
  for (const float value : b.tops[0]) CHECK((value >= 2 && value <= 3));
  options.seed = 6;
  fill_batch(*open_source(layer, here(), options), 10, 4, other);
  CHECK(other.tops[0] != b.tops[0]);
  filler->set_type("gausian");
  CHECK(has(complaint([&] { (void)open_source(layer, here(), options); }), "gaussian"));
}
