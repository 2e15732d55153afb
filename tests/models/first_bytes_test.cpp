#include "models/first_bytes.hpp"

#include "tests/folder.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <unistd.h>

using namespace poseidon;

TEST_CASE("first_bytes: a byte order mark is no part of a text, and nothing else is taken away") {
  CHECK(without_byte_order_mark("\xef\xbb\xbfname") == "name");
  for (const std::string text : {"", "n", "na", "name: 1", "\xef\xbb", "\xef\xbb\xbe x"}) {
    CHECK(without_byte_order_mark(text) == text);
    for (const std::string mark : {"", "\xef\xbb\xbf"}) {
      std::istringstream in(mark + text);
      skip_byte_order_mark(in);
      std::string rest, piece;
      for (char c = 0; in.get(c);) rest += c;
      CHECK(rest == text);
    }
  }
  for (const std::string text : {"", "n", "\xef\xbb\xbe", "name ps\n"})
    for (const std::string mark : {"", "\xef\xbb\xbf"}) {
      int ends[2] = {};
      REQUIRE(::pipe(ends) == 0);
      REQUIRE(::write(ends[1], (mark + text).data(), mark.size() + text.size()) >= 0);
      ::close(ends[1]);
      std::ifstream in("/dev/fd/" + std::to_string(ends[0]));
      skip_byte_order_mark(in);
      CHECK(std::string(std::istreambuf_iterator<char>(in), {}) == text);
      ::close(ends[0]);
    }
  CHECK(is_utf16("\xff\xfen"));
  CHECK(is_utf16("\xfe\xff"));
  CHECK_FALSE(is_utf16("\xef\xbb\xbf"));
  CHECK_FALSE(is_utf16(""));
}

TEST_CASE(
    "first_bytes: a pointer of Git LFS is named, with the size of the file that it stands for") {
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, '0') +
      "\nsize 4949270\n";
  CHECK(lfs_pointer(pointer) ==
        "a pointer of Git LFS in place of the file, which has 4949270 bytes and was not fetched. "
        "Run git lfs pull in its repository, or download the file itself");
  CHECK(lfs_pointer(pointer.substr(0, 50)).find("in place of the file and was not") !=
        std::string::npos);
  CHECK(lfs_pointer("version 1\nsize 3\n").empty());
  CHECK(lfs_pointer("").empty());
  const test::temporary_folder folder;
  CHECK(lfs_pointer_at(folder.write("a", pointer)) == lfs_pointer(pointer));
  CHECK(lfs_pointer_at(folder.write("b", "")).empty());
  CHECK(lfs_pointer_at(folder.path()).empty());
  CHECK(lfs_pointer_at(folder / "none").empty());
}
