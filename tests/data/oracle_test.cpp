// The records that Caffe's tools wrote, read by ours, against the lists that came with them.
#include "data/image_store.hpp"
#include "data/mean_file.hpp"
#include "tests/data/made_files.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <sstream>

using namespace poseidon;
using namespace poseidon::test;

namespace {
std::filesystem::path oracle() {
  const char* set = std::getenv("POSEIDON_ORACLE");
  return set != nullptr ? set : "../shared/oracle";
}
const bool missing = !std::filesystem::exists(oracle() / "MANIFEST.json");
}  // namespace

TEST_CASE("oracle: every record of Caffe's LMDBs has the listed key, shape, label and sum" *
          doctest::skip(missing)) {
  for (const std::string name : {"fashion_train", "fashion_test", "rgb", "float"}) {
    const auto images = open_images(oracle() / "data" / (name + "_lmdb"));
    std::istringstream list(read_file(oracle() / "data" / (name + "_records.csv")));
    std::string line;
    std::getline(list, line);
    std::uint64_t n = 0;
    std::vector<float> scratch;
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

TEST_CASE(
    "oracle: our mean of the training images is, bit for bit, that of Caffe's compute_image_mean" *
    doctest::skip(missing)) {
  const auto theirs = read_mean(oracle() / "data/mean.binaryproto");
  const auto ours = mean_of(*open_images(oracle() / "data/fashion_train_lmdb"));
  CHECK(ours.shape == theirs.shape);
  CHECK(ours.values == theirs.values);
}
