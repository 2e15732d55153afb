#include "actors/links/link_acceptor.hpp"

#include "actors/links/farewell.hpp"
#include "tests/actors/links/link_rig.hpp"
#include "tests/tls_authority.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace poseidon {
namespace {

using namespace std::chrono_literals;

struct acceptor_rig {
  test::system_rig rig;
  std::shared_ptr<tcp_listener> listener =
      std::make_shared<tcp_listener>(host_port{"127.0.0.1", 0});
  host_port at{"127.0.0.1", listener->port()};
  handshake_options options;
  std::shared_ptr<test::inbox<link_accepted>> accepted;
  std::shared_ptr<test::inbox<peer_refused>> refused;
  handle<link_acceptor> acceptor;

  explicit acceptor_rig(std::shared_ptr<const tls_context> tls = nullptr) {
    options.tls = std::move(tls);
    options.token = "secret";
    options.build = "0.1.0";
    options.self.listen_address = "head:7600";
    options.limit = test::patience;
    port<link_accepted> a;
    port<peer_refused> r;
    std::tie(a, accepted) = rig.listen<link_accepted>();
    std::tie(r, refused) = rig.listen<peer_refused>();
    acceptor = spawn<link_acceptor>(rig.system(), rig.book, thread_kind::own, "link_acceptor",
                                    listener, options, a, r);
    listener.reset();
    rig.end_with_test(acceptor.untyped());
  }
};

/// Without TLS and with it: strangers are to get no more room where they reach OpenSSL.
std::vector<std::shared_ptr<const tls_context>> both_kinds() {
  return {nullptr, test::tls_authority().context("node")};
}

TEST_CASE("link_acceptor: silent strangers do not hold up a node that knows the token") {
  for (const auto& tls : both_kinds()) {
    CAPTURE(tls != nullptr);
    acceptor_rig t(tls);
    std::vector<std::shared_ptr<tcp_socket>> strangers;
    for (int i = 0; i < 5; ++i) strangers.push_back(connect_to(t.at, test::patience));
    auto o = t.options;
    o.self.listen_address = ":7601";
    const auto c = dial(t.at, o, test::patience);
    const auto a = t.accepted->wait_for(1);
    REQUIRE(a.size() == 1);
    CHECK(a[0].connection.peer.listen_address == "127.0.0.1:7601");
    CHECK(c.peer.listen_address == "head:7600");
    CHECK(t.refused->size() == 0);
  }
}

/// A connection from an address of this machine that is not the usual one; silent.
class stranger {
 public:
  explicit stranger(const host_port& to) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in from{}, there{};
    from.sin_family = there.sin_family = AF_INET;
    from.sin_addr.s_addr = htonl(0x7f000002);  // 127.0.0.2
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    there.sin_port = htons(to.port);
    REQUIRE(::bind(fd_, reinterpret_cast<sockaddr*>(&from), sizeof from) == 0);
    REQUIRE(::connect(fd_, reinterpret_cast<sockaddr*>(&there), sizeof there) == 0);
  }
  ~stranger() { ::close(fd_); }
  stranger(const stranger&) = delete;
  stranger& operator=(const stranger&) = delete;

 private:
  int fd_;
};

TEST_CASE("link_acceptor: silent strangers of one host keep no other one out, and leave a line") {
  for (const auto& tls : both_kinds()) {
    CAPTURE(tls != nullptr);
    acceptor_rig t(tls);
    // It has connected, and says nothing until the strangers are there.
    const auto slow = connect_to(t.at, test::patience);
    std::vector<std::unique_ptr<stranger>> strangers;
    for (std::size_t i = 0; i < 4 * link_acceptor::max_guests; ++i)
      strangers.push_back(std::make_unique<stranger>(t.at));
    const auto r = t.refused->wait_for(1);
    REQUIRE(r.size() == 1);
    CHECK(r[0].text.find("127.0.0.2:") == 0);
    CHECK((r[0].text.find("had to give way") != std::string::npos ||
           r[0].text.find("was sent away") != std::string::npos));
    auto o = t.options;
    o.self.listen_address = ":7601";
    CHECK(shake_hands(*slow, handshake_role::dialer, o).listen_address == "head:7600");
    (void)dial(t.at, o, test::patience);
    CHECK(t.accepted->wait_for(2).size() == 2);
    CHECK(t.refused->size() <= 2);  // the rest is told in one line, ten seconds later
  }
}

TEST_CASE("link_acceptor: who has to give way is told that the node is busy, and dials again") {
  for (const auto& tls : both_kinds()) {
    CAPTURE(tls != nullptr);
    acceptor_rig t(tls);
    const auto first = connect_to(t.at, test::patience);
    std::vector<std::shared_ptr<tcp_socket>> others;
    // All of one host, so the oldest gives way.
    for (std::size_t i = 0; i < link_acceptor::max_guests; ++i)
      others.push_back(connect_to(t.at, test::patience));
    REQUIRE(t.refused->wait_for(1).size() == 1);
    try {
      (void)shake_hands(*first, handshake_role::dialer, t.options);
      FAIL("it was let in");
    } catch (const handshake_error& e) {
      CHECK(e.why == refusal::busy);
    }
    (void)dial(t.at, t.options, test::patience);
    CHECK(t.accepted->wait_for(1).size() == 1);
  }
}

TEST_CASE("link_acceptor: a refused peer is reported in one line and the next one is taken") {
  for (const auto& tls : both_kinds()) {
    CAPTURE(tls != nullptr);
    acceptor_rig t(tls);
    auto wrong = t.options;
    wrong.token = "guess";
    CHECK_THROWS_AS((void)dial(t.at, wrong, test::patience), handshake_error);
    const auto r = t.refused->wait_for(1);
    REQUIRE(r.size() == 1);
    CHECK(r[0].text.find("has another token than this node") != std::string::npos);
    (void)dial(t.at, t.options, test::patience);
    CHECK(t.accepted->wait_for(1).size() == 1);
  }
}

TEST_CASE("link_acceptor: stop_accepting frees the port though a stranger is still silent") {
  acceptor_rig t;
  auto stranger = connect_to(t.at, test::patience);
  tell_from_outside(t.acceptor, stop_accepting{});
  std::vector<std::byte> hello(80), more(1);
  const auto far = std::chrono::steady_clock::now() + test::patience;
  try {
    (void)stranger->read_exactly(hello, far);
    CHECK(stranger->read_exactly(more, far).value_or(1) == 0);  // closed, not timed out
  } catch (const socket_error& e) {
    CHECK(e.error == ECONNRESET);  // it had not been accepted yet
  }
  stranger.reset();
  // The port is free once the actor has ended.
  for (bool free = false; !free;) {
    try {
      tcp_listener again(t.at);
      free = true;
    } catch (const socket_error&) {
      std::this_thread::yield();
    }
  }
}

TEST_CASE("farewell: a peer that gets no link hears why, as from any link") {
  acceptor_rig t;
  auto dialled = dial(t.at, t.options, test::patience);
  const auto accepted = t.accepted->wait_for(1);
  REQUIRE(accepted.size() == 1);
  say_farewell(accepted[0].connection, seat_id{0}, {"there is no room"});
  test::end_options o;
  o.self = no_seat;
  o.peer = seat_id{0};
  o.keys = dialled.peer.keys;
  auto end = test::make_end(t.rig, dialled.socket, o);
  const auto lost = end.lost->wait_for(1);
  REQUIRE(lost.size() == 1);
  CHECK(lost[0].on_purpose);
  CHECK(lost[0].reason == "there is no room");
}

TEST_CASE("link_acceptor: accepted and dialled connections carry a link") {
  acceptor_rig t;
  auto o = t.options;
  o.self.listen_address = ":7601";
  auto dialled = dial(t.at, o, test::patience);
  const auto accepted = t.accepted->wait_for(1);
  REQUIRE(accepted.size() == 1);
  test::end_options one, two;
  two.self = seat_id{1};
  two.peer = seat_id{0};
  auto a = test::make_end(t.rig, accepted[0].connection.socket, one);
  auto b = test::make_end(t.rig, dialled.socket, two);
  a.send(frames::push_gradient{chunk_id{2}, clock_id{5}}, 1000, 2.5f, 3);
  b.send(frames::push_gradient{chunk_id{3}, clock_id{5}}, 1000, 2.5f, 3);
  CHECK(b.gradients->wait_for(1).size() == 1);
  CHECK(a.gradients->wait_for(1).size() == 1);
}

}  // namespace
}  // namespace poseidon
