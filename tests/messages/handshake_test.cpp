#include "messages/wire/handshake.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace poseidon {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t identity_bytes = 1561;  // messages/wire/handshake.cpp

struct outcome {
  std::optional<link_identity> peer;
  refusal why{};
  std::string text;
};

outcome run(tcp_socket& s, handshake_role role, const handshake_options& o) {
  outcome out;
  try {
    out.peer = shake_hands(s, role, o);
  } catch (const handshake_error& e) {
    out.why = e.why;
    out.text = e.what();
  }
  return out;
}

handshake_options options(std::string token, std::string address = "10.1.1.1:7600") {
  handshake_options o;
  o.token = std::move(token);
  o.build = "0.1.0";
  o.self.listen_address = std::move(address);
  o.limit = 60s;
  return o;
}

struct connection {
  tcp_listener listener{{"127.0.0.1", 0}};
  std::shared_ptr<tcp_socket> dialer = connect_to({"127.0.0.1", listener.port()}, 60s);
  std::shared_ptr<tcp_socket> acceptor = listener.accept(60s);
};

// Both sides at once; first the dialer's view of it.
std::pair<outcome, outcome> both(const handshake_options& d, const handshake_options& a) {
  connection c;
  auto there = std::async(std::launch::async, [&] {
    auto o = run(*c.acceptor, handshake_role::acceptor, a);
    if (!o.peer) c.acceptor->shutdown();
    return o;
  });
  auto here = run(*c.dialer, handshake_role::dialer, d);
  if (!here.peer) c.dialer->shutdown();
  return {here, there.get()};
}

// The acceptor against bytes that the test sends.
outcome against(std::span<const std::byte> bytes, handshake_options o = options("secret")) {
  connection c;
  std::thread stranger([&] {
    c.dialer->write(bytes);
    c.dialer->shutdown_writing();
  });
  auto out = run(*c.acceptor, handshake_role::acceptor, o);
  stranger.join();
  return out;
}

std::span<const std::byte> bytes_of(std::string_view s) {
  return std::as_bytes(std::span(s));
}

TEST_CASE("handshake: two nodes with one token learn who the other is") {
  auto d = options("secret", ":7601");
  auto a = options("secret", "head:7600");
  a.self.seat = seat_id{0};
  a.self.epoch = 3;
  const auto [dialer, acceptor] = both(d, a);
  REQUIRE(dialer.peer);
  REQUIRE(acceptor.peer);
  CHECK(dialer.peer->listen_address == "head:7600");
  CHECK(dialer.peer->seat == seat_id{0});
  CHECK(dialer.peer->epoch == 3);
  CHECK(acceptor.peer->listen_address == "127.0.0.1:7601");  // the host that the acceptor saw
  CHECK(acceptor.peer->seat == no_seat);
}

TEST_CASE(
    "handshake: two nodes without a token agree, and 0.0.0.0 is no address to be reached at") {
  const auto [dialer, acceptor] = both(options("", "0.0.0.0:7601"), options("", "[::]:7602"));
  REQUIRE(dialer.peer);
  REQUIRE(acceptor.peer);
  CHECK(acceptor.peer->listen_address == "127.0.0.1:7601");
  CHECK(dialer.peer->listen_address == "127.0.0.1:7602");
}

TEST_CASE("handshake: an acceptor says who it is when a connection comes, and who leads") {
  auto a = options("secret", "head:7600");
  std::atomic<int> asked = 0;
  a.identify = [&asked] {
    link_identity self;
    self.listen_address = "head:7600";
    self.seat = seat_id{2};
    self.leader_address = "10.0.0.9:7600";
    ++asked;
    return self;
  };
  const auto [dialer, acceptor] = both(options("secret", ":7601"), a);
  REQUIRE(dialer.peer);
  REQUIRE(acceptor.peer);
  CHECK(asked == 1);
  CHECK(dialer.peer->seat == seat_id{2});
  CHECK(dialer.peer->leader_address == "10.0.0.9:7600");
  CHECK(dialer.peer->wants == link_identity::purpose::train);
  CHECK(acceptor.peer->leader_address.empty());
}

TEST_CASE("handshake: who dials says what for") {
  auto d = options("secret", ":7601");
  d.self.wants = link_identity::purpose::ask_to_leave;
  const auto [dialer, acceptor] = both(d, options("secret"));
  REQUIRE(acceptor.peer);
  CHECK(acceptor.peer->wants == link_identity::purpose::ask_to_leave);
}

TEST_CASE("handshake: both hear by what the other's results may differ") {
  auto d = options("secret", ":7601"), a = options("secret");
  d.self.fingerprint = "oneDNN\t2.6.3\t\n";
  a.self.fingerprint = std::string(max_fingerprint_bytes, 'x');
  const auto [dialer, acceptor] = both(d, a);
  REQUIRE(dialer.peer);
  REQUIRE(acceptor.peer);
  CHECK(acceptor.peer->fingerprint == d.self.fingerprint);
  CHECK(dialer.peer->fingerprint == a.self.fingerprint);
}

TEST_CASE("handshake: a fingerprint longer than its place is refused") {
  link_identity who;
  who.listen_address = "host:1";
  who.fingerprint = "x";
  auto bytes = encode(who);
  CHECK(decode_identity(bytes, "host").fingerprint == "x");
  // The higher byte of its length.
  bytes[bytes.size() - max_fingerprint_bytes - 1] = std::byte{0xff};
  CHECK_THROWS_AS((void)decode_identity(bytes, "host"), std::invalid_argument);
  who.fingerprint = std::string(max_fingerprint_bytes + 1, 'x');
  CHECK_THROWS_AS((void)encode(who), std::invalid_argument);
}

TEST_CASE("handshake: a witness says that it is one") {
  auto d = options("secret", ":7601");
  d.self.wants = link_identity::purpose::witness;
  const auto [dialer, acceptor] = both(d, options("secret"));
  REQUIRE(acceptor.peer);
  CHECK(acceptor.peer->wants == link_identity::purpose::witness);
  CHECK(name_of(*acceptor.peer).starts_with("a joining witness, which listens on "));
}

TEST_CASE(
    "handshake: a leader's address that is none, and a purpose that is not known, are refused") {
  auto d = options("secret", ":7601"), a = options("secret");
  SUBCASE("purpose") {
    d.self.wants = link_identity::purpose{7};
  }
  SUBCASE("address") {
    d.self.leader_address = "nowhere";
  }
  const auto [dialer, acceptor] = both(d, a);
  CHECK(!acceptor.peer);
  CHECK(acceptor.why == refusal::bad_identity);
}

TEST_CASE("handshake: with different tokens both sides are told, and neither names a token") {
  const auto [dialer, acceptor] = both(options("secret one"), options("secret two"));
  CHECK(!dialer.peer);
  CHECK(!acceptor.peer);
  CHECK(acceptor.why == refusal::wrong_token);
  CHECK(dialer.why == refusal::wrong_token);
  CHECK(acceptor.text.starts_with("127.0.0.1:"));
  CHECK(acceptor.text.ends_with(
      " has another token than this node. Give every node the same --token-file."));
  CHECK(dialer.text.ends_with(
      " refused this node: the tokens differ. Give every node the same --token-file."));
  CHECK((acceptor.text + dialer.text).find("secret") == std::string::npos);
}

TEST_CASE("handshake: a token on one side only is refused by both, saying which side lacks it") {
  const auto [dialer, acceptor] = both(options(""), options("secret"));
  CHECK(acceptor.why == refusal::token_missing);
  CHECK(dialer.why == refusal::token_missing);
  CHECK(acceptor.text.find("has no token, this node has one") != std::string::npos);
  CHECK(dialer.text.find("has a token, this node has none") != std::string::npos);
}

TEST_CASE("handshake: another protocol version is refused by both with both versions") {
  const auto ours = std::to_string(wire_version);
  auto d = options("secret");
  d.version = 99;
  const auto [dialer, acceptor] = both(d, options("secret"));
  CHECK(acceptor.why == refusal::other_version);
  CHECK(dialer.why == refusal::other_version);
  CHECK(acceptor.text.find("speaks protocol version 99, this node speaks version " + ours +
                           " (build 0.1.0)") != std::string::npos);
  CHECK(dialer.text.find("speaks protocol version " + ours +
                         ", this node speaks version 99 (build 0.1.0)") != std::string::npos);
}

TEST_CASE("handshake: whatever else connects is named by what it said") {
  auto o = against(bytes_of("GET / HTTP/1.1\r\nHost: head\r\n\r\n"));
  CHECK(o.why == refusal::not_poseidon);
  CHECK(o.text.find("it began with \"GET / HT\", expected \"POSEIDON\"") != std::string::npos);
  o = against(bytes_of(std::string_view("\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03", 11)));
  CHECK(o.why == refusal::closed);  // less than a hello's beginning
  o = against({});
  CHECK(o.why == refusal::closed);
  CHECK(o.text.find("closed the connection during the handshake") != std::string::npos);
}

TEST_CASE("handshake: a stranger that knows everything but the token gets no proof to guess from") {
  connection c;
  std::thread node([&] {
    CHECK(!run(*c.acceptor, handshake_role::acceptor, options("secret")).peer);
    c.acceptor->shutdown();
  });
  // Its own hello, reflected: the magic, version and token flag are right.
  std::vector<std::byte> hello(80);
  const auto far = std::chrono::steady_clock::now() + 60s;
  CHECK(c.dialer->read_exactly(hello, far) == hello.size());
  c.dialer->write(hello);
  std::vector<std::byte> proof(1 + identity_bytes + 32);
  proof[0] = std::byte{1};
  c.dialer->write(proof);
  std::vector<std::byte> rest(1000);
  CHECK(c.dialer->read_exactly(rest, far) == 2u);  // "refused, wrong token" and no more
  CHECK(rest[0] == std::byte{3});
  CHECK(rest[1] == std::byte{1});
  node.join();
}

TEST_CASE("handshake: a man in the middle who changes the identity is found out") {
  connection left, right;  // dialer - [left] - middle - [right] - acceptor
  auto a = std::async(std::launch::async, [&] {
    auto o = run(*right.acceptor, handshake_role::acceptor, options("secret"));
    if (!o.peer) right.acceptor->shutdown();
    return o;
  });
  auto d = std::async(std::launch::async,
                      [&] { return run(*left.dialer, handshake_role::dialer, options("secret")); });
  const auto far = std::chrono::steady_clock::now() + 60s;
  std::vector<std::byte> hello(80), proof(1 + identity_bytes + 32);
  CHECK(left.acceptor->read_exactly(hello, far) == 80u);
  right.dialer->write(hello);
  CHECK(right.dialer->read_exactly(hello, far) == 80u);
  left.acceptor->write(hello);
  CHECK(left.acceptor->read_exactly(proof, far) == proof.size());
  proof[20] ^= std::byte{1};  // in the address
  right.dialer->write(proof);
  CHECK(a.get().why == refusal::wrong_token);
  left.acceptor->shutdown();
  CHECK(!d.get().peer);
}

TEST_CASE("handshake: a silent peer is given up at the limit") {
  connection c;
  auto o = options("secret");
  o.limit = 50ms;
  const auto out = run(*c.acceptor, handshake_role::acceptor, o);
  CHECK(out.why == refusal::silent);
  CHECK(out.text.find("said nothing for 50 ms during the handshake") != std::string::npos);
}

TEST_CASE("handshake: a peer that closes half-way is a typed error at every byte") {
  connection c;
  std::vector<std::byte> hello(80);
  {
    auto other = std::async(std::launch::async, [&] {
      return run(*c.acceptor, handshake_role::acceptor, options("secret"));
    });
    CHECK(c.dialer->read_exactly(hello, std::chrono::steady_clock::now() + 60s) == 80u);
    c.dialer->shutdown();
    CHECK(other.get().why == refusal::closed);
  }
  for (std::size_t n = 0; n < hello.size(); n += 7) {
    CAPTURE(n);
    CHECK(against(std::span(hello).first(n)).why == refusal::closed);
  }
}

TEST_CASE("dial: waits for a node that does not listen yet, and not for one that refuses it") {
  std::uint16_t port = 0;
  {
    tcp_listener l({"127.0.0.1", 0});
    port = l.port();
  }
  SUBCASE("it appears while we try") {
    auto dialled = std::async(std::launch::async, [&] {
      return dial({"127.0.0.1", port}, options("secret"), 60s);
    });
    tcp_listener l({"127.0.0.1", port});
    std::shared_ptr<tcp_socket> s;
    while (!s) s = l.accept(60s);
    CHECK(run(*s, handshake_role::acceptor, options("secret")).peer);
    CHECK(dialled.get().peer.listen_address == "10.1.1.1:7600");
  }
  SUBCASE("it is busy at first") {
    tcp_listener l({"127.0.0.1", port});
    auto dialled = std::async(std::launch::async, [&] {
      return dial({"127.0.0.1", port}, options("secret"), 60s);
    });
    auto first = l.accept(60s);
    REQUIRE(first);
    refuse_busy(*first, options("secret"));
    auto second = l.accept(60s);
    REQUIRE(second);
    CHECK(run(*second, handshake_role::acceptor, options("secret")).peer);
    CHECK(dialled.get().peer.listen_address == "10.1.1.1:7600");
  }
  SUBCASE("an earlier run ends there at first") {
    tcp_listener l({"127.0.0.1", port});
    auto dialled = std::async(std::launch::async, [&] {
      return dial({"127.0.0.1", port}, options("secret"), 60s);
    });
    for (const bool says_hello : {false, true}) {
      auto ending = l.accept(60s);
      REQUIRE(ending);
      std::vector<std::byte> hello(80);
      CHECK(ending->read_exactly(hello, std::chrono::steady_clock::now() + 60s) == 80u);
      if (says_hello) ending->write(hello);
    }
    auto next = l.accept(60s);
    REQUIRE(next);
    CHECK(run(*next, handshake_role::acceptor, options("secret")).peer);
    CHECK(dialled.get().peer.listen_address == "10.1.1.1:7600");
  }
  SUBCASE("it never appears") {
    CHECK_THROWS_AS((void)dial({"127.0.0.1", port}, options("secret"), 30ms), socket_error);
  }
  SUBCASE("it has another token") {
    tcp_listener l({"127.0.0.1", port});
    auto dialled = std::async(std::launch::async, [&] {
      return dial({"127.0.0.1", port}, options("secret"), 60s);
    });
    auto s = l.accept(60s);
    REQUIRE(s);
    CHECK(run(*s, handshake_role::acceptor, options("other")).why == refusal::wrong_token);
    CHECK_THROWS_AS(dialled.get(), handshake_error);
  }
}

}  // namespace
}  // namespace poseidon
