#include "data/mean_file.hpp"

#include "data/image_store.hpp"
#include "tests/data/made_files.hpp"

#include <doctest/doctest.h>

using namespace poseidon;
using namespace poseidon::test;

TEST_CASE("mean: of three images, value by value, and through a file without a change") {
  temporary_folder folder;
  make_image_lmdb(folder / "db", 3, {2, 2, 3});
  const auto mean = mean_of(*open_images(folder / "db"));
  REQUIRE(mean.values.size() == 12);
  for (std::size_t i = 0; i < 12; ++i)
    CHECK(mean.values[i] == static_cast<float>(pixel(0, i) + pixel(1, i) + pixel(2, i)) / 3.0f);
  write_mean(folder / "m", mean);
  const auto again = read_mean(folder / "m");
  CHECK(again.shape == shape{2, 2, 3});
  CHECK(again.values == mean.values);
  CHECK_FALSE(std::filesystem::exists(folder / "m.partial"));
}

TEST_CASE(
    "mean: a file that is missing, cut short, or not of one image is refused by name and size") {
  temporary_folder folder;
  CHECK(complaint([&] { (void)read_mean(folder / "none"); }).find("none: cannot open") !=
        std::string::npos);
  write_mean(folder / "m", {{1, 2, 2}, {1, 2, 3, 4}});
  write_file(folder / "cut", read_file(folder / "m").substr(0, 20));
  CHECK(complaint([&] { (void)read_mean(folder / "cut"); }).find("cut: not a BlobProto") !=
        std::string::npos);
  write_mean(folder / "m", {{1, 2, 2}, {1, 2, 3}});
  CHECK(complaint([&] { (void)read_mean(folder / "m"); }).find("is 1x2x2 and has 3 values") !=
        std::string::npos);
  ::caffe::BlobProto two;
  for (const int extent : {2, 1, 1, 1}) two.mutable_shape()->add_dim(extent);
  write_file(folder / "two", two.SerializeAsString());
  CHECK(complaint([&] { (void)read_mean(folder / "two"); }).find("this is 2x1x1x1") !=
        std::string::npos);
}

TEST_CASE("mean: a folder that cannot be written to is named") {
  CHECK(complaint([&] {
          write_mean("/nowhere/m", {{1, 1, 1}, {1}});
        }).find("/nowhere/m: cannot be written") != std::string::npos);
}

TEST_CASE("mean: ours of the training images is, bit for bit, that of Caffe's compute_image_mean" *
          doctest::skip(oracle_is_missing())) {
  const auto theirs = read_mean(oracle() / "data/mean.binaryproto");
  const auto ours = mean_of(*open_images(oracle() / "data/fashion_train_lmdb"));
  CHECK(ours.shape == theirs.shape);
  CHECK(ours.values == theirs.values);
}
