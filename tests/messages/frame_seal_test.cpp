#include "messages/wire/frame_seal.hpp"

#include <doctest/doctest.h>
#include <openssl/crypto.h>

#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace poseidon;

namespace {

constexpr std::array<std::byte, 80> hello_a{std::byte{1}}, hello_b{std::byte{2}};
using part = std::span<const std::byte>;

seal_tag tag_of(frame_seal& s, const std::vector<part>& parts) {
  return s.next(parts);
}

}  // namespace

TEST_CASE("frame_seal: both sides of a connection have the same keys, the other way round") {
  const auto d = keys_of_link("secret", hello_a, hello_b, true);
  const auto a = keys_of_link("secret", hello_a, hello_b, false);
  CHECK(d.out == a.in);
  CHECK(d.in == a.out);
  CHECK(d.out != d.in);
  CHECK(keys_of_link("other", hello_a, hello_b, true).out != d.out);
  CHECK(keys_of_link("secret", hello_a, hello_a, true).out != d.out);
}

TEST_CASE("frame_seal: a tag is of all bytes of a piece, wherever it is cut, and of its place") {
  const auto keys = keys_of_link("secret", hello_a, hello_b, true);
  frame_seal out(keys.out), in(keys.out), third(keys.out);
  std::vector<std::byte> piece(1000, std::byte{7});
  const part whole = piece;
  const auto tag = tag_of(out, {whole});
  CHECK(same_tag(tag, tag_of(in, {whole.first(8), whole.subspan(8, 0), whole.subspan(8)})));
  CHECK(!same_tag(tag, tag_of(in, {whole})));  // the second piece
  piece[999] = std::byte{8};
  CHECK(!same_tag(tag, tag_of(third, {whole})));
}

TEST_CASE("frame_seal: threads that end with the process find what OpenSSL shares among them") {
  const auto child = fork();
  if (child == 0) {
    (void)keys_of_link("secret", hello_a, hello_b, true);  // where no other test has used OpenSSL
    OPENSSL_atexit([] { _exit(7); });                      // OpenSSL calls it as it frees that
    std::exit(0);
  }
  int ended = 0;
  REQUIRE(waitpid(child, &ended, 0) == child);
  REQUIRE(WIFEXITED(ended));
  CHECK(WEXITSTATUS(ended) == 0);
}
