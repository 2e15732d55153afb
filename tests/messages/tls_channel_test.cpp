#include "messages/wire/gathered.hpp"
#include "tests/messages/tls_rig.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <sys/socket.h>
#include <thread>
#include <vector>

namespace poseidon {
namespace {

using namespace std::chrono_literals;
using test::bytes_of;
using test::encrypted;
using test::soon;

std::vector<std::byte> noise(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> out(size);
  for (auto& b : out) b = static_cast<std::byte>(random());
  return out;
}

/// In parts of many sizes, several a call, as links write headers, pieces and tags.
void write_in_parts(tcp_socket& s, std::vector<std::byte>& bytes, unsigned seed) {
  std::mt19937 random(seed);
  for (std::size_t at = 0; at < bytes.size();) {
    std::vector<iovec> parts;
    for (int i = 0; i < 5 && at < bytes.size(); ++i) {
      const std::size_t sizes[] = {0, 1, 22, 100, 16384, 40000, 262144};
      const auto size = std::min(sizes[random() % std::size(sizes)], bytes.size() - at);
      parts.push_back({bytes.data() + at, size});
      at += size;
    }
    s.write(parts);
  }
}

std::vector<std::byte> read_in_parts(tcp_socket& s, std::size_t size) {
  std::vector<std::byte> out(size);
  std::size_t have = 0;
  while (have < size) {
    // As a link reads: to its place, and a few bytes ahead of that.
    const auto first = std::min<std::size_t>(100000, size - have);
    const auto ahead = std::min<std::size_t>(256, size - have - first);
    iovec parts[] = {{out.data() + have, first}, {out.data() + have + first, ahead}};
    const auto n = s.read_some(parts, test::patience, size - have);
    REQUIRE(n);
    REQUIRE(*n > 0);
    have += *n;
  }
  return out;
}

void carries_both_ways(encrypted& c, std::size_t size) {
  auto there = noise(size, 1), back = noise(size + 12345, 2);
  const auto sent_there = there, sent_back = back;
  std::thread a([&] { write_in_parts(*c.dialer, there, 3); });
  std::thread b([&] { write_in_parts(*c.acceptor, back, 4); });
  auto read_back =
      std::async(std::launch::async, [&] { return read_in_parts(*c.dialer, sent_back.size()); });
  const auto read_there = read_in_parts(*c.acceptor, sent_there.size());
  a.join();
  b.join();
  CHECK(read_there == sent_there);
  CHECK(read_back.get() == sent_back);
}

TEST_CASE("tls: what is written arrives, both ways at the same time") {
  encrypted c;
  CHECK(c.dialer->tls()->description() == "TLSv1.3, TLS_AES_128_GCM_SHA256");
  for (const std::size_t size : {std::size_t{1}, std::size_t{16384}, std::size_t{40} << 20}) {
    CAPTURE(size);
    carries_both_ways(c, size);
  }
  CHECK(c.dialer->tls()->key_changes() == 0);
}

TEST_CASE("tls: both writers change their keys while both read") {
  encrypted c(7);
  carries_both_ways(c, 20 << 20);
  CHECK(c.dialer->tls()->key_changes() > 100);
  CHECK(c.acceptor->tls()->key_changes() > 100);
}

TEST_CASE("tls: nobody on the way reads what is written") {
  test::connection c;
  const test::tls_authority authority;
  c.dialer->use_tls(*authority.context("dialer"), tls_side::dials);
  auto shaken = std::async(std::launch::async,
                           [&] { return test::error_of([&] { c.dialer->shake_tls(soon()); }); });
  char seen[3] = {};
  CHECK(::recv(c.acceptor->descriptor(), seen, sizeof seen, MSG_WAITALL) == 3);
  CHECK(seen[0] == 0x16);  // handshake
  CHECK(seen[1] == 0x03);
  c.acceptor->shutdown();
  CHECK(shaken.get() == c.dialer->peer() +
                            " closed the connection during the TLS handshake. It may have no "
                            "--tls-cert, or be no poseidon-node; its log says more.");
}

TEST_CASE("tls: a record that the kernel takes in part is completed by the next write") {
  encrypted c;
  const int small = 4096;
  ::setsockopt(c.dialer->descriptor(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
  auto bytes = noise(4 << 20, 5);
  const auto sent = bytes;
  iovec one{bytes.data(), bytes.size()};
  auto rest = c.dialer->write_some(std::span(&one, 1));  // until nobody has read for write_patience
  REQUIRE_FALSE(rest.empty());
  auto read =
      std::async(std::launch::async, [&] { return read_in_parts(*c.acceptor, sent.size()); });
  c.dialer->write(rest);
  CHECK(read.get() == sent);
}

TEST_CASE("tls: a peer that closes in the middle of a transfer is noticed by reader and writer") {
  encrypted c;
  std::vector<std::byte> much(1 << 20);
  SUBCASE("after what it has sent, the reader reads the end") {
    c.dialer->write(bytes_of("the last words"));
    c.dialer->shutdown_writing();
    CHECK(test::read_all(*c.acceptor) == "the last words");
    c.acceptor->write(bytes_of("heard"));  // the other direction goes on
    c.acceptor->shutdown_writing();
    CHECK(test::read_all(*c.dialer) == "heard");
  }
  SUBCASE("without TLS's goodbye too, as a process that is killed") {
    c.dialer->write(bytes_of("the last words"));
    ::shutdown(c.dialer->descriptor(), SHUT_WR);
    CHECK(test::read_all(*c.acceptor) == "the last words");
  }
  SUBCASE("the writer fails, and no signal ends the process") {
    c.acceptor.reset();
    const auto error = test::error_of([&] {
      for (;;) c.dialer->write(much);
    });
    CHECK(error.find(c.dialer->peer()) != std::string::npos);
  }
  SUBCASE("a shutdown from another thread wakes both") {
    auto reader = std::async(std::launch::async, [&] { return test::read_all(*c.dialer); });
    auto writer = std::async(std::launch::async, [&] {
      return test::error_of([&] {
        for (;;) c.dialer->write(much);
      });
    });
    c.dialer->shutdown();
    CHECK(reader.get().empty());
    CHECK(writer.get() != "no error");
  }
}

TEST_CASE("tls: a few bytes of a record are read, and the rest without a wait for the socket") {
  encrypted c;
  c.dialer->write(bytes_of("POSEIDON and more"));
  std::array<std::byte, 8> first{};
  std::array<std::byte, 9> second{};
  const wake_up stop;
  CHECK(c.acceptor->read_exactly(first, soon(), &stop) == 8);
  CHECK(c.acceptor->tls()->has_read_ahead());
  CHECK(c.acceptor->read_exactly(second, soon(), &stop) == 9);
  CHECK(std::memcmp(second.data(), " and more", 9) == 0);
}

TEST_CASE("tls: only a reader of much is woken late, and only while it waits for much") {
  encrypted c;
  const auto woken_for = [&] {
    int bytes = 0;
    socklen_t size = sizeof bytes;
    ::getsockopt(c.acceptor->descriptor(), SOL_SOCKET, SO_RCVLOWAT, &bytes, &size);
    return bytes;
  };
  const unsigned char head_of_a_record[] = {0x17, 3, 3, 0x40, 0x11};  // the body is yet to come
  REQUIRE(::send(c.dialer->descriptor(), head_of_a_record, sizeof head_of_a_record, 0) == 5);
  std::byte into{};
  iovec part{&into, 1};
  CHECK_FALSE(c.acceptor->read_some(std::span(&part, 1), 1ms, 1 << 20));
  CHECK(woken_for() >= 16384);
  CHECK_FALSE(c.acceptor->read_some(std::span(&part, 1), 1ms));
  CHECK(woken_for() == 1);
}

TEST_CASE("tls: a wait for a peer ends when it is told to") {
  encrypted c;
  wake_up stop;
  std::thread waker([&] { stop.set(); });
  std::array<std::byte, 8> into{};
  int error = 0;
  try {
    (void)c.acceptor->read_exactly(into, soon(), &stop);
  } catch (const socket_error& e) {
    error = e.error;
  }
  CHECK(error == ECANCELED);
  waker.join();
  CHECK_FALSE(c.acceptor->read_exactly(into, std::chrono::steady_clock::now() + 1ms));
}

TEST_CASE("tls: a changed byte ends the connection") {
  encrypted c;
  const unsigned char record[] = {0x17, 3, 3, 0, 20, 1, 2, 3, 4, 5, 6, 7, 8,
                                  9,    0, 1, 2, 3,  4, 5, 6, 7, 8, 9, 0};
  REQUIRE(::send(c.dialer->descriptor(), record, sizeof record, 0) == sizeof record);
  const auto read = [&] { return test::read_all(*c.acceptor); };
  const auto error = test::error_of(read);
  CHECK(error.starts_with(c.acceptor->peer() + " broke TLS: "));
  CHECK(test::error_of(read) == error);  // for good
}

TEST_CASE("tls: who drips bytes has no more time than who says nothing") {
  const test::tls_authority authority;
  const auto context = authority.context("acceptor");
  for (const bool drips : {false, true}) {
    CAPTURE(drips);
    test::connection c;
    std::atomic<bool> over{false};
    std::thread stranger([&, dialer = c.dialer] {
      const unsigned char start[] = {0x16, 3, 1, 0x3f, 0xff, 1, 0, 0x3f, 0xfb, 3, 3};
      std::size_t at = 0;
      while (drips && !over) {
        const unsigned char next = at < sizeof start ? start[at] : 0;
        if (++at < 16000) (void)::send(dialer->descriptor(), &next, 1, MSG_NOSIGNAL);
        std::this_thread::sleep_for(1ms);  // the pace of the drip
      }
    });
    c.acceptor->use_tls(*context, tls_side::accepts);
    const auto error =
        test::error_of([&] { c.acceptor->shake_tls(std::chrono::steady_clock::now() + 100ms); });
    over = true;
    stranger.join();
    CHECK(error == c.acceptor->peer() +
                       " has not finished the TLS handshake in time. It may be frozen, or no "
                       "poseidon-node.");
  }
}

}  // namespace
}  // namespace poseidon
