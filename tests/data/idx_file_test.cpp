#include "data/idx_file.hpp"

#include "data/image_store.hpp"
#include "tests/data/made_files.hpp"

#include <doctest/doctest.h>

#include <zlib.h>

using namespace poseidon;
using namespace poseidon::test;

namespace {
void write_gzip(const std::filesystem::path& path, const std::string& content) {
  gzFile file = gzopen(path.c_str(), "wb");
  REQUIRE(file != nullptr);
  REQUIRE(gzwrite(file, content.data(), static_cast<unsigned>(content.size())) ==
          static_cast<int>(content.size()));
  REQUIRE(gzclose(file) == Z_OK);
}

void check_made(const image_store& images, std::size_t count, std::size_t values) {
  image_scratch scratch;
  REQUIRE(images.size() == count);
  for (std::size_t n = 0; n < count; ++n) {
    const auto one = images.get(n, scratch);
    const auto expected = made_image(n, values);
    CHECK(std::equal(expected.begin(), expected.end(), one.bytes.begin(), one.bytes.end()));
    CHECK(one.label == static_cast<std::int32_t>(n % 10));
  }
}
}  // namespace

TEST_CASE("idx: images find their labels by name, plain or packed, whatever the names claim") {
  temporary_folder folder;
  write_file(folder / "a-images-idx3-ubyte", idx_images(13, 3, 5));
  write_file(folder / "a-labels-idx1-ubyte", idx_labels(13));
  check_made(*open_images(folder / "a-images-idx3-ubyte"), 13, 15);
  check_made(*open_images(folder / "a"), 13, 15);  // by prefix

  write_gzip(folder / "b-images-idx3-ubyte.gz", idx_images(2000, 28, 28));  // more than one piece
  write_gzip(folder / "b-labels-idx1-ubyte", idx_labels(2000));             // packed, without .gz
  check_made(*open_images(folder / "b-images-idx3-ubyte.gz"), 2000, 784);
  check_made(*open_images(folder / "b"), 2000, 784);
}

TEST_CASE("idx: a file cut short is refused with both sizes, a packed one too") {
  temporary_folder folder;
  write_file(folder / "x", idx_images(10, 4, 4).substr(0, 100));
  const auto text = complaint([&] { (void)read_idx(folder / "x", 3); });
  CHECK_MESSAGE(text.find("truncated IDX file: 100 bytes") != std::string::npos, text);
  CHECK_MESSAGE(text.find("promises 176") != std::string::npos, text);
  write_file(folder / "x", idx_images(10, 4, 4) + "z");
  CHECK(complaint([&] { (void)read_idx(folder / "x", 3); }).find("too long") != std::string::npos);
  write_gzip(folder / "z", idx_images(100, 28, 28));
  const auto packed = read_file(folder / "z");
  for (std::size_t bytes = 3; bytes < packed.size(); bytes += packed.size() / 50 + 1) {
    write_file(folder / "cut", packed.substr(0, bytes));
    const auto cut = complaint([&] { (void)read_idx(folder / "cut", 3); });
    CHECK_MESSAGE(cut.find("cut: damaged or truncated gzip file") != std::string::npos, cut);
  }
  write_file(folder / "x", std::string("\0\0\x08", 3));
  CHECK(complaint([&] { (void)read_idx(folder / "x", 3); }).find("truncated") != std::string::npos);
  write_file(folder / "x", big_endian(0x803) + std::string(12, '\xff'));
  CHECK(complaint([&] { (void)read_idx(folder / "x", 3); }).find("truncated") != std::string::npos);
}

TEST_CASE("idx: exchanged images and labels are told by both magic words") {
  temporary_folder folder;
  write_file(folder / "images", idx_images(3, 2, 2));
  write_file(folder / "labels", idx_labels(3));
  const auto text = complaint([&] { (void)open_idx(folder / "labels", folder / "images"); });
  CHECK_MESSAGE(text.find("begins with 0x00000801, expected 0x00000803") != std::string::npos,
                text);
}

TEST_CASE("idx: as many labels as images, or both counts are told; none at all is refused") {
  temporary_folder folder;
  write_file(folder / "images", idx_images(3, 2, 2));
  write_file(folder / "labels", idx_labels(4));
  const auto text = complaint([&] { (void)open_idx(folder / "images", folder / "labels"); });
  CHECK_MESSAGE(text.find("3 images, but") != std::string::npos, text);
  CHECK_MESSAGE(text.find("has 4 labels") != std::string::npos, text);
  write_file(folder / "images", idx_images(0, 2, 2));
  write_file(folder / "labels", idx_labels(0));
  CHECK(complaint([&] { (void)open_idx(folder / "images", folder / "labels"); }) != "");
}

TEST_CASE("cifar: binary batches follow each other; a broken one is refused with its size") {
  temporary_folder folder;
  const auto record = [](std::size_t n) {
    const auto pixels = made_image(n, 3072);
    return static_cast<char>(n % 10) + std::string(pixels.begin(), pixels.end());
  };
  write_file(folder / "1.bin", record(0) + record(1));
  write_file(folder / "2.bin", record(2));
  const auto images = open_cifar10({folder / "1.bin", folder / "2.bin"});
  CHECK(images->image_shape() == shape{3, 32, 32});
  check_made(*images, 3, 3072);
  write_file(folder / "2.bin", record(2).substr(1));
  CHECK(complaint([&] { (void)open_images(folder / "2.bin"); }).find("3072 bytes") !=
        std::string::npos);
}
