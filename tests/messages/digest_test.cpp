#include "messages/wire/digest.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <thread>
#include <vector>

using namespace poseidon;

namespace {

std::vector<std::byte> bytes(std::size_t size) {
  std::vector<std::byte> out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<std::byte>(i * 7);
  return out;
}

}  // namespace

TEST_CASE("digest: one bit, one byte more and another order make another digest") {
  for (const std::size_t size : {1, 15, 16, 17, 100, 4097}) {
    CAPTURE(size);
    const auto from = bytes(size);
    const auto digest = digest_of(from);
    CHECK(digest_of(bytes(size)) == digest);
    for (const std::size_t place : {std::size_t{0}, size / 2, size - 1}) {
      auto other = from;
      other[place] ^= std::byte{1};
      CHECK(!(digest_of(other) == digest));
    }
    auto longer = from;
    longer.push_back(std::byte{0});
    CHECK(!(digest_of(longer) == digest));
    auto turned = from;
    std::reverse(turned.begin(), turned.end());
    CHECK((digest_of(turned) == digest) == (turned == from));
  }
}

TEST_CASE("digest: nothing has one, too, which is none of zeros") {
  CHECK(digest_of({}) == digest_of({}));
  CHECK(!(digest_of({}) == digest_of(std::vector<std::byte>(1))));
  CHECK(!(digest_of({}) == digest_of(std::vector<std::byte>(16))));
}

TEST_CASE("digest: all threads make the same one") {
  frames::byte_digest there;
  std::thread([&] { there = digest_of(bytes(1000)); }).join();
  CHECK(there == digest_of(bytes(1000)));
}
