#include "apps/bare/picture_source.hpp"

#include "models/spec/spec_file.hpp"
#include "tests/data/made_files.hpp"

#include <doctest/doctest.h>

#include <numeric>

using namespace poseidon;
using namespace poseidon::app;
using namespace poseidon::test;

namespace {

/// 4 rows of 4 gray pixels, 0 to 15.
std::filesystem::path make_picture(const temporary_folder& folder) {
  std::string bytes(16, '\0');
  std::iota(bytes.begin(), bytes.end(), '\0');
  write_file(folder / "p.pgm", "P5 4 4 255\n" + bytes);
  return folder / "p.pgm";
}

std::vector<float> sample(const picture_source& source, std::uint64_t n) {
  std::vector<float> values(static_cast<std::size_t>(count(source.sample_shapes().front())));
  const std::span<float> tops[] = {values};
  source.fill(n, tops);
  return values;
}

picture_request request_of(const std::filesystem::path& file) {
  picture_request r;
  r.files = {file};
  r.height = r.width = 4;
  return r;
}

}  // namespace

TEST_CASE("picture_source: ten crops are the corners and the centre, then their mirror images") {
  temporary_folder folder;
  auto request = request_of(make_picture(folder));
  request.oversample = true;
  const picture_source source(request, {1, 2, 2});
  REQUIRE(source.size() == 10);
  CHECK(sample(source, 0) == std::vector<float>{0, 1, 4, 5});
  CHECK(sample(source, 1) == std::vector<float>{2, 3, 6, 7});
  CHECK(sample(source, 2) == std::vector<float>{8, 9, 12, 13});
  CHECK(sample(source, 3) == std::vector<float>{10, 11, 14, 15});
  CHECK(sample(source, 4) == std::vector<float>{5, 6, 9, 10});
  CHECK(sample(source, 5) == std::vector<float>{1, 0, 5, 4});
  CHECK(sample(source, 9) == std::vector<float>{6, 5, 10, 9});
  CHECK(sample(source, 10) == sample(source, 0));  // the first picture follows the last
}

TEST_CASE("find_pictures: a folder's pictures are those whose endings the decoders know") {
  temporary_folder folder;
  for (const auto* name : {"a.bmp", "b.JPEG", "c.tif", "d.webp", "notes.txt", "e"})
    write_file(folder / name, "");
  std::vector<std::string> found;
  for (const auto& path : find_pictures({(folder / ".").string()}))
    found.push_back(path.filename().string());
  CHECK(found == std::vector<std::string>{"a.bmp", "b.JPEG", "c.tif", "d.webp"});

  std::filesystem::create_directory(folder / "none");
  CHECK_THROWS_WITH_AS(
      (void)find_pictures({(folder / "none").string()}),
      ((folder / "none").string() + ": no pictures in this folder (" + picture_endings + ").")
          .c_str(),
      spec_error);
}

TEST_CASE("picture_source: without oversampling, or room for it, the centre is the only crop") {
  temporary_folder folder;
  auto request = request_of(make_picture(folder));
  const picture_source centre(request, {1, 2, 2});
  REQUIRE(centre.size() == 1);
  CHECK(sample(centre, 0) == std::vector<float>{5, 6, 9, 10});
  request.oversample = true;
  CHECK(picture_source(request, {1, 4, 4}).size() == 1);
}

TEST_CASE("picture_source: the mean is subtracted where it lies, then the scale multiplies") {
  temporary_folder folder;
  auto request = request_of(make_picture(folder));
  request.scale = 2;
  std::vector<float> rising(16);
  std::iota(rising.begin(), rising.end(), 0.0f);
  request.mean = mean_image{{1, 4, 4}, rising};  // the picture itself
  CHECK(sample(picture_source(request, {1, 2, 2}), 0) == std::vector<float>{0, 0, 0, 0});
  request.mean = mean_image{{1, 2, 2}, {5, 6, 9, 8}};  // of the input's size: under the crop
  CHECK(sample(picture_source(request, {1, 2, 2}), 0) == std::vector<float>{0, 0, 0, 4});
  request.mean = mean_image{{1, 1, 2}, {4, 6}};  // of another size: its mean
  CHECK(sample(picture_source(request, {1, 2, 2}), 0) == std::vector<float>{0, 2, 8, 10});
}

TEST_CASE("picture_source: the size of pictures follows the mean image, or the input") {
  temporary_folder folder;
  auto request = request_of(make_picture(folder));
  request.height = request.width = 0;
  request.oversample = true;
  CHECK(picture_source(request, {1, 2, 2}).describe() ==
        "pictures are resized to 2x2, no mean subtracted");
  CHECK(picture_source(request, {1, 224, 224}).describe() ==
        "pictures are resized to 256x256, 10 crops of 224x224 each, no mean subtracted");
  request.mean = mean_image{{1, 3, 5}, std::vector<float>(15)};
  CHECK(picture_source(request, {1, 2, 2}).describe() ==
        "pictures are resized to 3x5, 10 crops of 2x2 each, minus the mean image");
}

TEST_CASE("picture_source: what does not fit is refused, and a broken picture named") {
  temporary_folder folder;
  auto request = request_of(make_picture(folder));
  CHECK_THROWS_AS(picture_source(request, {2, 2, 2}), spec_error);
  CHECK_THROWS_AS(picture_source(request, {1, 5, 5}), spec_error);
  request.mean = mean_image{{3, 4, 4}, std::vector<float>(48)};
  CHECK_THROWS_AS(picture_source(request, {1, 2, 2}), spec_error);
  request.mean.reset();
  write_file(folder / "broken.pgm", "P5 4 4 255\nshort");
  request.files.push_back(folder / "broken.pgm");
  CHECK_THROWS_AS(sample(picture_source(request, {1, 2, 2}), 1), std::runtime_error);
  request.may_skip = true;
  const picture_source skipping(request, {1, 2, 2});
  CHECK(sample(skipping, 1) == std::vector<float>(4));
  CHECK(skipping.failure(0).empty());
  CHECK(skipping.failure(1).find("broken.pgm: ") != std::string::npos);
}

TEST_CASE("picture_source: a picture whose file lacks its end is used, and its warning kept") {
  temporary_folder folder;
  auto jpeg = encode_jpeg(empty_picture(1, 4, 4));
  jpeg.resize(jpeg.size() - 2);
  write_file(folder / "cut.jpg", std::string(jpeg.begin(), jpeg.end()));
  auto request = request_of(make_picture(folder));
  request.files.push_back(folder / "cut.jpg");
  request.may_skip = true;
  const picture_source source(request, {1, 4, 4});
  CHECK(source.warning(1).empty());  // not filled yet
  (void)sample(source, 0);
  (void)sample(source, 1);
  CHECK(source.failure(1).empty());
  CHECK(source.warning(0).empty());
  CHECK(source.warning(1).find((folder / "cut.jpg").string() +
                               " is a JPEG without its end marker (EOI), ") == 0);
}
