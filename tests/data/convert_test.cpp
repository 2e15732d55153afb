#include "data/convert.hpp"

#include "data/image_store.hpp"
#include "tests/data/made_files.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <sys/resource.h>
#include <sys/wait.h>

using namespace poseidon;
using namespace poseidon::test;

namespace {
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
/// A folder with x-images and x-labels of `n` images, ready to convert.
void make_idx(const temporary_folder& folder, std::size_t n) {
  write_file(folder / "images", idx_images(n, 5, 6));
  write_file(folder / "labels", idx_labels(n));
}
}  // namespace

TEST_CASE(
    "convert: every image and label arrives, under a key of 8 digits, over several transactions") {
  temporary_folder folder;
  make_idx(folder, 2345);
  const auto from = open_idx(folder / "images", folder / "labels");
  convert(*from, folder / "out", {});
  const auto to = open_images(folder / "out");
  REQUIRE(to->size() == 2345);
  CHECK(to->image_shape() == shape{1, 5, 6});
  image_scratch a, b;
  for (std::uint64_t n = 0; n < 2345; ++n) {
    CHECK(to->key(n) == key_of(n));
    const auto x = from->get(n, a), y = to->get(n, b);
    CHECK(x.label == y.label);
    CHECK(std::equal(x.bytes.begin(), x.bytes.end(), y.bytes.begin(), y.bytes.end()));
  }
}

TEST_CASE(
    "convert: a disk that fills up is told with what was written, and leaves nothing behind") {
  temporary_folder folder;
  make_idx(folder, 20000);
  const auto from = open_idx(folder / "images", folder / "labels");
  // A limit on the file's size stands for the full disk; only the child has it.
  const auto child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{300'000, 300'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto text = complaint([&] { convert(*from, folder / "out", {}); });
    write_file(folder / "said", text);
    ::_exit(0);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  const auto text = read_file(folder / "said");
  CHECK_MESSAGE(has(text, "out: cannot commit after "), text);
  CHECK_MESSAGE(has(text, "MiB free. Make room"), text);
  CHECK_FALSE(std::filesystem::exists(folder / "out"));
  CHECK_FALSE(std::filesystem::exists(folder / "out.partial"));
}
