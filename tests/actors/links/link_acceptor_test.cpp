#include "actors/links/link_acceptor.hpp"

#include "tests/actors/links/link_rig.hpp"

#include <cerrno>

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

  acceptor_rig() {
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

TEST_CASE("link_acceptor: silent strangers do not hold up a node that knows the token") {
  acceptor_rig t;
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

TEST_CASE(
    "link_acceptor: the seventeenth silent stranger is sent away, and there is room again when one "
    "leaves") {
  acceptor_rig t;
  std::vector<std::shared_ptr<tcp_socket>> strangers;
  for (std::size_t i = 0; i < link_acceptor::max_guests + 1; ++i)
    strangers.push_back(connect_to(t.at, test::patience));
  const auto r = t.refused->wait_for(1);
  REQUIRE(r.size() == 1);
  CHECK(r[0].text.find("was sent away: 16 other connections") != std::string::npos);
  strangers.clear();
  const auto c = dial(t.at, t.options, test::patience);
  CHECK(t.accepted->wait_for(1).size() == 1);
}

TEST_CASE("link_acceptor: a refused peer is reported in one line and the next one is taken") {
  acceptor_rig t;
  auto wrong = t.options;
  wrong.token = "guess";
  CHECK_THROWS_AS((void)dial(t.at, wrong, test::patience), handshake_error);
  const auto r = t.refused->wait_for(1);
  REQUIRE(r.size() == 1);
  CHECK(r[0].text.find("has another token than this node") != std::string::npos);
  (void)dial(t.at, t.options, test::patience);
  CHECK(t.accepted->wait_for(1).size() == 1);
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

TEST_CASE("link_acceptor: accepted and dialled connections carry a link") {
  acceptor_rig t;
  auto o = t.options;
  o.self.listen_address = ":7601";
  auto dialled = dial(t.at, o, test::patience);
  const auto accepted = t.accepted->wait_for(1);
  REQUIRE(accepted.size() == 1);
  test::end_options one, two;
  two.self = worker_id{1};
  two.peer = worker_id{0};
  auto a = test::make_end(t.rig, accepted[0].connection.socket, one);
  auto b = test::make_end(t.rig, dialled.socket, two);
  a.send(frames::push_gradient{chunk_id{2}, clock_id{5}}, 1000, 2.5f, 3);
  b.send(frames::push_gradient{chunk_id{3}, clock_id{5}}, 1000, 2.5f, 3);
  CHECK(b.gradients->wait_for(1).size() == 1);
  CHECK(a.gradients->wait_for(1).size() == 1);
}

}  // namespace
}  // namespace poseidon
