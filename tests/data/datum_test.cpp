#include "data/datum.hpp"

#include "data/image_store.hpp"
#include "data/source.hpp"
#include "tests/data/made_files.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <sstream>

using namespace poseidon;
using namespace poseidon::test;

namespace {
std::span<const std::uint8_t> bytes_of(const std::string& s) {
  return {reinterpret_cast<const std::uint8_t*>(s.data()), s.size()};
}
std::string refusal(const ::caffe::Datum& d) {
  image_scratch scratch;
  return complaint([&] { (void)parse_datum(bytes_of(d.SerializeAsString()), scratch); });
}
}  // namespace

TEST_CASE("datum: what protobuf writes is read in place, without a copy of the pixels") {
  const auto pixels = made_image(3, 24);
  const auto record = make_datum({2, 3, 4}, pixels, -7);
  image_scratch scratch;
  const auto d = parse_datum(bytes_of(record), scratch);
  CHECK(shape_of(d) == shape{2, 3, 4});
  CHECK(d.label == -7);
  CHECK(std::equal(pixels.begin(), pixels.end(), d.bytes.begin(), d.bytes.end()));
  CHECK(d.bytes.data() >= bytes_of(record).data());
  CHECK(d.bytes.data() < bytes_of(record).data() + record.size());
}

TEST_CASE(
    "datum: float_data counts only where data is empty, as in Caffe, and unknown fields are "
    "skipped") {
  ::caffe::Datum d;
  d.set_channels(1);
  d.set_height(1);
  d.set_width(2);
  d.add_float_data(1.5f);
  d.add_float_data(-2.0f);
  image_scratch scratch;
  auto record = d.SerializeAsString() + std::string("\xa2\x06\x03xyz", 6);  // field 100, 3 bytes
  const auto read = parse_datum(bytes_of(record), scratch);
  REQUIRE(read.floats.size() == 2);
  CHECK(read.floats[1] == -2.0f);
  CHECK(read.label == 0);
  d.set_data("ab");
  d.add_float_data(3.0f);  // one too many
  record = d.SerializeAsString();
  CHECK(parse_datum(bytes_of(record), scratch).bytes.size() == 2);
}

TEST_CASE(
    "datum: a record whose values are not its shape's, or are no picture, is refused with both") {
  ::caffe::Datum d;
  CHECK(refusal(d).find("says it is 0x0x0 and has 0 values") != std::string::npos);
  d.set_channels(1);
  d.set_height(2);
  d.set_width(2);
  d.set_data("abc");
  CHECK(refusal(d).find("says it is 1x2x2 and has 3 values") != std::string::npos);
  d.set_height(-2);
  d.set_width(-2);
  d.set_data("abcd");
  CHECK(refusal(d).find("1x-2x-2") != std::string::npos);
  d.set_channels(0x7fffffff);
  d.set_height(0x7fffffff);
  d.set_width(0x7fffffff);
  CHECK(refusal(d).find("has 4 values") != std::string::npos);
  d.set_encoded(true);
  CHECK(refusal(d) == "is none of JPEG, PNG, WebP, TIFF, BMP, PPM, PGM, PBM by its first bytes");
}

TEST_CASE(
    "datum: a record cut short anywhere is refused or lacks values, never read beyond its end") {
  const auto record = make_datum({1, 4, 4}, made_image(1, 16), 300);
  image_scratch scratch;
  for (std::size_t n = 0; n + 3 < record.size(); ++n) {
    const std::vector<std::uint8_t> cut(record.begin(), record.begin() + static_cast<long>(n));
    CHECK(complaint([&] { (void)parse_datum(cut, scratch); }) != "");
  }
}

TEST_CASE(
    "image_store: a bad record in an LMDB is named by file, key and both shapes; the others are "
    "read") {
  temporary_folder folder;
  make_lmdb(folder / "db",
            {make_datum({1, 2, 2}, made_image(0, 4), 1), make_datum({1, 2, 3}, made_image(1, 6), 2),
             "garbage", make_datum({1, 2, 2}, made_image(3, 4), 3)});
  const auto images = open_images(folder / "db");
  image_scratch scratch;
  CHECK(images->get(0, scratch).label == 1);
  CHECK(images->get(3, scratch).label == 3);
  ::caffe::LayerParameter layer = data_layer((folder / "db").string());
  const auto source = open_source(layer, here(), {});
  std::vector<float> data(4), label(1);
  const std::vector<std::span<float>> tops{data, label};
  const auto shapes = complaint([&] { source->fill(1, tops); });
  CHECK_MESSAGE(shapes.find("data.mdb: record \"00000001\" is 1x2x3, the first record is 1x2x2") !=
                    std::string::npos,
                shapes);
  const auto garbage = complaint([&] { (void)images->get(2, scratch); });
  CHECK_MESSAGE(garbage.find("record \"00000002\" not a Datum") != std::string::npos, garbage);
}

TEST_CASE("image_store: every record of Caffe's LMDBs has the listed key, shape, label and sum" *
          doctest::skip(oracle_is_missing())) {
  for (const std::string name : {"fashion_train", "fashion_test", "rgb", "float"}) {
    const auto images = open_images(oracle() / "data" / (name + "_lmdb"));
    std::istringstream list(read_file(oracle() / "data" / (name + "_records.csv")));
    std::string line;
    std::getline(list, line);
    std::uint64_t n = 0;
    image_scratch scratch;
    for (; std::getline(list, line); ++n) {
      REQUIRE(n < images->size());
      std::istringstream cells(line);
      std::string key, cell;
      std::getline(cells, key, ',');
      std::vector<double> numbers;
      while (std::getline(cells, cell, ',')) numbers.push_back(std::stod(cell));
      REQUIRE(numbers.size() == 6);
      const auto one = images->get(n, scratch);
      double sum = 0;
      for (const auto value : one.bytes) sum += value;
      for (const auto value : one.floats) sum += static_cast<double>(value);
      CHECK(images->key(n) == key);
      CHECK(images->image_shape() ==
            shape{std::int64_t(numbers[0]), std::int64_t(numbers[1]), std::int64_t(numbers[2])});
      CHECK(one.label == static_cast<int>(numbers[3]));
      CHECK(static_cast<double>(one.bytes.size() + one.floats.size()) == numbers[4]);
      CHECK(std::abs(sum - numbers[5]) <= 1e-6 * std::max(1.0, std::abs(numbers[5])));
    }
    CHECK(n == images->size());
  }
}
