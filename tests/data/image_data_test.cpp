// ImageData, and Data with encoded Datums.
#include "data/convert.hpp"
#include "data/image_list.hpp"
#include "data/source.hpp"
#include "tests/data/made_files.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace poseidon;
using namespace poseidon::test;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string pgm(int height, int width, int value) {
  return "P5 " + std::to_string(width) + " " + std::to_string(height) + " 255\n" +
         std::string(static_cast<std::size_t>(height * width), static_cast<char>(value));
}

/// n pictures of one gray value each, their place; label 100 + place.
std::filesystem::path make_list(const temporary_folder& folder, int n) {
  std::string list;
  for (int i = 0; i < n; ++i) {
    const auto name = "a picture " + std::to_string(i) + ".pgm";
    write_file(folder / name, pgm(2, 3, i));
    list += name + " " + std::to_string(100 + i) + "\n";
  }
  write_file(folder / "list.txt", list);
  return folder / "list.txt";
}

::caffe::LayerParameter image_layer(const std::string& source) {
  ::caffe::LayerParameter layer;
  layer.set_name("data");
  layer.set_type("ImageData");
  layer.add_top("data");
  layer.add_top("label");
  layer.mutable_image_data_param()->set_source(source);
  layer.mutable_image_data_param()->set_batch_size(4);
  return layer;
}

/// Labels of n samples from `first` on.
std::vector<int> labels(const sample_source& source, std::uint64_t first, std::uint64_t n) {
  std::vector<float> data(static_cast<std::size_t>(count(source.sample_shapes()[0]))), label(1);
  const std::vector<std::span<float>> tops{data, label};
  std::vector<int> result;
  for (std::uint64_t i = 0; i < n; ++i) {
    source.fill(first + i, tops);
    CHECK(data[0] == label[0] - 100);
    result.push_back(static_cast<int>(label[0]));
  }
  return result;
}

}  // namespace

TEST_CASE("image data: pictures and labels in the list's order, round and round") {
  temporary_folder folder;
  source_options options;
  options.directory = folder.path();
  make_list(folder, 5);
  const auto source = open_source(image_layer("list.txt"), here(), options);
  CHECK(source->size() == 5);
  CHECK(source->sample_shapes() == std::vector<shape>{{3, 2, 3}, {}});
  CHECK(labels(*source, 3, 5) == std::vector<int>{103, 104, 100, 101, 102});
}

TEST_CASE("image data: a list may begin with a byte order mark, and names may have a #") {
  temporary_folder folder;
  (void)make_list(folder, 1);
  write_file(folder / "b#1.pgm", pgm(2, 3, 1));
  write_file(folder / "list.txt",
             "\xef\xbb\xbf"
             "a picture 0.pgm 100\r\nb#1.pgm 101\r\n");
  source_options options;
  options.directory = folder.path();
  const auto source = open_source(image_layer("list.txt"), here(), options);
  CHECK(labels(*source, 0, 3) == std::vector<int>{100, 101, 100});
}

TEST_CASE("image data: shuffle gives each epoch an order of its own, the same for everybody") {
  temporary_folder folder;
  source_options options;
  options.directory = folder.path();
  options.seed = 3;
  make_list(folder, 20);
  auto layer = image_layer("list.txt");
  layer.mutable_image_data_param()->set_shuffle(true);
  layer.mutable_image_data_param()->set_is_color(false);
  const auto source = open_source(layer, here(), options),
             other = open_source(layer, here(), options);
  const auto first = labels(*source, 0, 20), second = labels(*source, 20, 20);
  CHECK(std::set<int>(first.begin(), first.end()).size() == 20);
  CHECK(std::set<int>(second.begin(), second.end()).size() == 20);
  CHECK(first != second);
  CHECK_FALSE(std::is_sorted(first.begin(), first.end()));
  CHECK(labels(*other, 20, 20) == second);  // also for a reader that begins there
  CHECK(labels(*other, 0, 20) == first);
  options.seed = 4;
  CHECK(labels(*open_source(layer, here(), options), 0, 20) != first);
}

TEST_CASE("image data: rand_skip begins further on, below its limit, and the epoch stays whole") {
  temporary_folder folder;
  source_options options;
  options.directory = folder.path();
  make_list(folder, 6);
  auto layer = image_layer("list.txt");
  layer.mutable_image_data_param()->set_rand_skip(1);
  CHECK(labels(*open_source(layer, here(), options), 0, 1) == std::vector<int>{100});
  layer.mutable_image_data_param()->set_rand_skip(4);
  std::set<int> starts;
  for (options.seed = 0; options.seed < 40; ++options.seed) {
    const auto all = labels(*open_source(layer, here(), options), 0, 6);
    starts.insert(all[0]);
    CHECK(std::set<int>(all.begin(), all.end()).size() == 6);
  }
  CHECK(starts == std::set<int>{100, 101, 102, 103});
  layer.mutable_image_data_param()->set_rand_skip(7);
  CHECK(has(complaint([&] { (void)open_source(layer, here(), options); }),
            "rand_skip is 7, the list has 6 images."));
}

TEST_CASE("image data: root_folder, resize, gray, crop and mean apply as in Caffe") {
  temporary_folder folder;
  source_options options;
  options.directory = folder.path();
  options.phase = ::caffe::TEST;
  std::filesystem::create_directory(folder / "photos");
  write_file(folder / "photos/a.pgm", pgm(4, 4, 40));
  write_file(folder / "photos/b.pgm", pgm(9, 5, 90));
  write_file(folder / "list", "a.pgm 0\nb.pgm 1\n");
  auto layer = image_layer("list");
  auto& p = *layer.mutable_image_data_param();
  p.set_root_folder("photos/");
  p.set_new_height(6);
  p.set_new_width(8);
  p.set_is_color(false);
  layer.mutable_transform_param()->set_crop_size(3);
  layer.mutable_transform_param()->add_mean_value(30);
  layer.mutable_transform_param()->set_scale(0.5f);
  const auto check = [&](const sample_source& source) {
    REQUIRE(source.sample_shapes() == std::vector<shape>{{1, 3, 3}, {}});
    std::vector<float> data(9), label(1);
    const std::vector<std::span<float>> tops{data, label};
    source.fill(1, tops);
    CHECK(data == std::vector<float>(9, 30.0f));
    CHECK(label[0] == 1);
  };
  check(*open_source(layer, here(), options));
  p.clear_new_height();
  p.clear_new_width();
  check(*open_source(layer, here(), options));  // pictures of two sizes, and a crop that fits both
  layer.mutable_transform_param()->clear_crop_size();
  const auto source = open_source(layer, here(), options);
  std::vector<float> data(16), label(1);
  const std::vector<std::span<float>> tops{data, label};
  CHECK(has(complaint([&] { source->fill(1, tops); }),
            "list:2: \"b.pgm\" is 1x9x5, the first record is 1x4x4"));
}

TEST_CASE("image data: every mistake names layer, list, line and file") {
  temporary_folder folder;
  source_options options;
  options.directory = folder.path();
  const auto refused = [&](const ::caffe::LayerParameter& layer) {
    const auto text = complaint([&] { (void)open_source(layer, here(), options); });
    CHECK_MESSAGE(text.find("net.prototxt:7: layer \"data\" (ImageData): ") == 0, text);
    return text;
  };
  const auto with = [&](const std::string& list) {
    write_file(folder / "list", list);
    return image_layer("list");
  };
  CHECK(has(refused(image_layer("none")), "none: no such list of images. Relative names start at"));
  CHECK(has(refused(image_layer("")), "no image_data_param.source"));
  CHECK(has(refused(with("\n\n")), "a list without images"));
  CHECK(has(refused(with("a.jpg 1\nb.jpg\n")),
            "list:2: \"b.jpg\" is no path and label. Write: path/to/image.jpg 7"));
  CHECK(has(refused(with("a.jpg one\n")), "list:1: \"a.jpg one\" is no path and label"));
  for (const char* commented : {"# training set\n", "# set 1\n", "a.jpg 1 # a cat\n", "#a.jpg 1\n"})
    CHECK_MESSAGE(
        has(refused(with(commented)), "A # begins no comment in a list, here as in Caffe"),
        commented);
  write_file(folder / "lfs.jpg", "version https://git-lfs.github.com/spec/v1\nsize 12\n");
  CHECK(has(refused(with("lfs.jpg 1\n")),
            "list:1: \"lfs.jpg\" is a pointer of Git LFS in place of "));
  CHECK(has(refused(with(read_file(folder / "lfs.jpg"))), "list: this is a pointer of Git LFS"));
  CHECK(has(refused(with("none.jpg 1\n")),
            "list:1: \"none.jpg\" cannot be opened: No such file or directory."));
  write_file(folder / "cut.png", read_file("tests/data/pictures/colour.png").substr(0, 60));
  CHECK(has(refused(with("cut.png 1\n")), "list:1: \"cut.png\" is a damaged PNG: "));
  make_list(folder, 2);
  auto layer = image_layer("list.txt");
  layer.mutable_image_data_param()->set_new_height(3);
  CHECK(has(refused(layer), "new_height is 3 and new_width 0. Give both, or none."));
  layer.mutable_image_data_param()->clear_new_height();
  layer.mutable_image_data_param()->set_batch_size(0);
  CHECK(
      has(complaint([&] { (void)batch_size(layer, here()); }), "image_data_param.batch_size is 0"));
}

TEST_CASE("data: encoded pictures are decoded as stored, or as force_color and force_gray say") {
  temporary_folder folder;
  write_file(folder / "list", "tests/data/pictures/colour.png 3\n");
  const auto pictures = open_image_list(folder / "list", {});
  image_scratch scratch;
  const auto expected = pictures->get(0, scratch);
  const std::vector<std::uint8_t> pixels(expected.bytes.begin(), expected.bytes.end());
  for (const auto kind : {database_kind::lmdb, database_kind::leveldb}) {
    convert_options how;
    how.replace = true;
    how.encoding = datum_encoding::png;
    how.kind = kind;
    const auto db = folder / (kind == database_kind::lmdb ? "lmdb" : "leveldb");
    convert(*pictures, db, how);
    auto layer = data_layer(db.string());
    std::vector<float> data(3 * 13 * 17), label(1);
    const auto fill = [&](const shape& s) {
      const auto source = open_source(layer, here(), {});
      CHECK(source->sample_shapes()[0] == s);
      const std::vector<std::span<float>> tops{
          std::span(data).first(static_cast<std::size_t>(count(s))), label};
      source->fill(0, tops);
    };
    fill({3, 13, 17});
    CHECK(std::equal(pixels.begin(), pixels.end(), data.begin()));
    CHECK(label[0] == 3);
    layer.mutable_transform_param()->set_force_gray(true);
    fill({1, 13, 17});
    std::vector<std::uint8_t> file;
    read_whole("tests/data/pictures/colour.png.expected.gray.pgm", file);
    const auto gray = decode_picture(file, picture_colour::gray);
    CHECK(std::equal(gray.pixels.begin(), gray.pixels.end(), data.begin()));
    layer.mutable_transform_param()->set_force_color(true);
    CHECK(has(complaint([&] { (void)open_source(layer, here(), {}); }),
              "force_color and force_gray. Keep one"));
  }
}
