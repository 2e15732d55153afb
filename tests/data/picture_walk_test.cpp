// Seeded walks through damaged pictures: every kind of file, cut short and with other bytes.
#include "data/picture.hpp"
#include "tests/data/made_files.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using namespace poseidon;
using namespace poseidon::test;

namespace {

using file_bytes = std::vector<std::uint8_t>;

std::vector<std::pair<std::string, file_bytes>> every_kind() {
  std::vector<std::pair<std::string, file_bytes>> files;
  for (const auto& entry : std::filesystem::directory_iterator("tests/data/pictures")) {
    const auto name = entry.path().filename().string();
    if (std::count(name.begin(), name.end(), '.') > 1) continue;  // what is expected of another
    const auto text = read_file(entry.path());
    files.emplace_back(name, file_bytes(text.begin(), text.end()));
  }
  for (const std::string text :
       {"P1\n5 2\n0 1 0 1 1\n01101\n", "P2 # c\n3 2 100\n0 7 14 100 99 50\n",
        "P3 2 1 31\n0 17 3 20 6 31\n", "P4 9 2 abcd", "P5 2 1 65535 abcd", "P6 1 1 4095 abcdef"})
    files.emplace_back(text.substr(0, 2), file_bytes(text.begin(), text.end()));
  std::sort(files.begin(), files.end());
  return files;
}

/// A picture of as many values as it says, or a sentence without its subject.
std::string fault_of(const file_bytes& file, picture_colour colour) {
  try {
    const auto p = decode_picture(file, colour);
    const auto values = p.channels * p.height * p.width;
    if (values < 1 || p.pixels.size() != static_cast<std::size_t>(values)) return "another size";
    return p.warning.empty() || p.warning.rfind("is a ", 0) == 0 ? "" : p.warning;
  } catch (const std::runtime_error& e) {
    const std::string text = e.what();
    return text.rfind("is ", 0) == 0 || text.rfind("says it is ", 0) == 0 ? "" : text;
  }
}

void check_comes_back(const std::string& name, const file_bytes& file, std::uint32_t n) {
  const auto fault = fault_of(file, static_cast<picture_colour>(n % 3));
  CHECK_MESSAGE(fault == "", name << ", step " << n << ": " << fault);
}

}  // namespace

TEST_CASE("picture: cut anywhere, every kind of file is a picture or a message") {
  for (const auto& [name, file] : every_kind())
    for (std::size_t left = 0; left < file.size(); left += 1 + file.size() / 200)
      check_comes_back(name, {file.begin(), file.begin() + static_cast<long>(left)},
                       static_cast<std::uint32_t>(left));
}

TEST_CASE("picture: with other bytes, every kind of file is a picture or a message") {
  std::mt19937 random(20260);
  const auto below = [&random](std::size_t n) { return random() % n; };
  for (const auto& [name, file] : every_kind())
    for (std::uint32_t n = 0; n < 150; ++n) {
      auto damaged = file;
      // Half of the damage is in the first bytes, where sizes and kinds are.
      for (auto times = 1 + below(4); times > 0; --times) {
        const auto at =
            below(below(2) == 0 ? std::min<std::size_t>(damaged.size(), 64) : damaged.size());
        if (below(3) == 0)
          damaged[at] = static_cast<std::uint8_t>(random());
        else
          damaged[at] ^= static_cast<std::uint8_t>(1u << below(8));
      }
      if (below(4) == 0) damaged.resize(1 + below(damaged.size()));
      if (below(8) == 0) damaged.insert(damaged.end(), file.begin(), file.end());
      check_comes_back(name, damaged, n);
    }
}
