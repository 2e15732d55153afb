// What each side is told when TLS does not come about: one line each, that says what to do.
#include "messages/wire/handshake.hpp"
#include "tests/messages/tls_rig.hpp"

#include <optional>
#include <thread>

namespace poseidon {
namespace {

using namespace std::chrono_literals;
using test::bytes_of;
using test::tls_authority;

constexpr std::time_t day = 24 * 3600;

struct outcome {
  std::optional<proved_peer> peer;
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
    s.shutdown();
  }
  return out;
}

handshake_options options(std::shared_ptr<const tls_context> tls) {
  handshake_options o;
  o.token = "secret";
  o.build = "0.1.0";
  o.self.listen_address = "10.1.1.1:7600";
  o.limit = 60s;
  o.tls = std::move(tls);
  return o;
}

struct both_said {
  std::unique_ptr<test::connection> ends = std::make_unique<test::connection>();
  outcome dialer, acceptor;
  std::string of_dialer() { return dialer.text.substr(ends->dialer->peer().size()); }
  std::string of_acceptor() { return acceptor.text.substr(ends->acceptor->peer().size()); }
};

both_said shake(const handshake_options& d, const handshake_options& a) {
  both_said out;
  auto there = std::async(std::launch::async,
                          [&] { return run(*out.ends->acceptor, handshake_role::acceptor, a); });
  out.dialer = run(*out.ends->dialer, handshake_role::dialer, d);
  out.acceptor = there.get();
  return out;
}

/// Our acceptor against bytes of a stranger.
outcome against(std::string_view bytes, const handshake_options& o) {
  test::connection c;
  std::thread stranger([&] {
    c.dialer->write(bytes_of(bytes));
    c.dialer->shutdown_writing();
  });
  auto out = run(*c.acceptor, handshake_role::acceptor, o);
  stranger.join();
  out.text = out.text.substr(c.acceptor->peer().size());
  return out;
}

TEST_CASE(
    "tls: nodes with certificates of one authority prove themselves, and the token is still asked "
    "for") {
  const tls_authority authority;
  const auto one = options(authority.context("one"));
  auto two = options(authority.context("two"));
  auto said = shake(one, two);
  CHECK(said.dialer.text.empty());
  CHECK(said.acceptor.text.empty());
  REQUIRE(said.dialer.peer);
  REQUIRE(said.acceptor.peer);
  CHECK(said.acceptor.peer->listen_address == "10.1.1.1:7600");
  two.token = "another";
  said = shake(one, two);
  CHECK(said.dialer.why == refusal::wrong_token);
  CHECK(said.acceptor.why == refusal::wrong_token);
}

TEST_CASE("tls: a certificate of another authority is refused, and both are told") {
  const tls_authority ours("the cluster"), others("another cluster");
  const auto here = options(ours.context("here")), foreign = options(others.context("foreign"));
  auto said = shake(foreign, here);
  // The dialer sees a certificate first. It tells the acceptor by an alert.
  CHECK(said.dialer.why == refusal::certificate);
  CHECK(said.of_dialer() ==
        " has a certificate that (of /CN=here, by /CN=the cluster) does not chain to this node's "
        "--tls-ca: unable to get local issuer certificate. Give all nodes certificates that one "
        "authority has signed, and the same --tls-ca.");
  CHECK(said.acceptor.why == refusal::certificate);
  CHECK(said.of_acceptor() ==
        " refused this node's certificate: it does not chain to its --tls-ca (TLS alert 48). Give "
        "all nodes certificates that one authority has signed, and the same --tls-ca.");
}

TEST_CASE("tls: who is refused with a former certificate is told why the new one is not in use") {
  const tls_authority ours("the cluster"), others("another cluster");
  const auto files = others.sign("foreign");
  const auto foreign = options(std::make_shared<const tls_context>(files));
  std::filesystem::remove(files.key);
  const auto said = shake(foreign, options(ours.context("here")));
  CHECK(said.dialer.why == refusal::certificate);
  CHECK(said.dialer.text.ends_with(
      " This node's own files have changed and cannot be used, so it still shows its former "
      "certificate: --tls-key " +
      files.key.string() + ": cannot be read: No such file or directory"));
}

TEST_CASE("tls: a dialer that trusts the acceptor, and is not trusted by it, is told why") {
  const tls_authority ours("the cluster"), others("another cluster");
  // It knows our authority, but its certificate is of another one: as after an authority was replaced on one machine only.
  auto files = others.sign("foreign");
  const auto both = ours.folder().write("both.pem", [&] {
    std::string text;
    for (const auto& path : {files.authority, ours.folder() / "ca.pem"}) {
      std::ifstream in(path);
      text.append(std::istreambuf_iterator<char>(in), {});
    }
    return text;
  }());
  files.authority = both;
  const auto foreign = options(std::make_shared<const tls_context>(files));
  auto said = shake(foreign, options(ours.context("here")));
  CHECK(said.acceptor.why == refusal::certificate);
  CHECK(said.of_acceptor().starts_with(
      " has a certificate that (of /CN=foreign, by /CN=another cluster) does not chain to this "
      "node's --tls-ca: "));
  CHECK(said.dialer.why == refusal::certificate);
  CHECK(said.of_dialer().starts_with(
      " refused this node's certificate: it does not chain to its --tls-ca (TLS alert 48)."));
}

TEST_CASE("tls: another authority of the same name is another authority") {
  const tls_authority ours, others;
  auto said = shake(options(others.context("foreign")), options(ours.context("here")));
  CHECK(said.dialer.why == refusal::certificate);
  CHECK(said.of_dialer().find(" does not chain to this node's --tls-ca: ") != std::string::npos);
  CHECK(said.of_acceptor().find(" does not chain to its --tls-ca") != std::string::npos);
}

TEST_CASE("tls: an expired certificate is refused with its date, and its owner is told") {
  const tls_authority authority;
  const auto old = options(authority.context("old", 1));
  // For the other node some days have passed.
  const auto later = options(authority.context("later", 30, std::time(nullptr) + 5 * day));
  auto said = shake(old, later);
  CHECK(said.acceptor.why == refusal::certificate);
  const auto text = said.of_acceptor();
  CHECK(text.starts_with(" has a certificate that has expired: it was valid until 20"));
  CHECK(
      text.ends_with(" UTC. Make a new one with the cluster's authority; if it should be valid, "
                     "set this machine's clock."));
  CHECK(said.dialer.why == refusal::certificate);
  CHECK(said.of_dialer() ==
        " refused this node's certificate as expired (TLS alert 45). Make a new one with the "
        "cluster's authority; if it is still valid, set that machine's clock.");
  said = shake(later, old);
  CHECK(said.of_dialer().starts_with(" has a certificate that has expired: "));
  CHECK(said.of_acceptor().starts_with(" refused this node's certificate as expired "));
}

TEST_CASE("tls: a dialer without a certificate is refused by a node") {
  const tls_authority authority;
  auto said = shake(options(authority.reader()), options(authority.context("here")));
  CHECK(said.of_acceptor() ==
        " has shown no certificate. Give it the cluster's --tls-cert, --tls-key and --tls-ca.");
  CHECK(said.of_dialer() ==
        " wants a certificate of this node. Give it the cluster's --tls-cert, --tls-key and "
        "--tls-ca (TLS alert 116).");
}

TEST_CASE("tls: a plain node and one with TLS refuse each other, and both say what to do") {
  const tls_authority authority;
  const auto plain = options(nullptr), tls = options(authority.context("here"));
  auto said = shake(plain, tls);
  CHECK(said.dialer.why == refusal::tls_differs);
  CHECK(said.of_dialer() ==
        " refused this node: it has TLS, this node has none. Give this node the cluster's "
        "--tls-cert, --tls-key and --tls-ca, or give them to no node.");
  CHECK(said.acceptor.why == refusal::tls_differs);
  CHECK(said.of_acceptor() ==
        " speaks Poseidon's protocol without TLS, and this node has TLS. Give it the cluster's "
        "--tls-cert, --tls-key and --tls-ca, or give them to no node.");
  said = shake(tls, plain);
  CHECK(said.dialer.why == refusal::tls_differs);
  CHECK(said.of_dialer() ==
        " speaks Poseidon's protocol without TLS, and this node has TLS. Give it the cluster's "
        "--tls-cert, --tls-key and --tls-ca, or give them to no node.");
  CHECK(said.acceptor.why == refusal::tls_differs);
  CHECK(said.of_acceptor() ==
        " speaks TLS, and this node has none. Give this node the cluster's --tls-cert, --tls-key "
        "and --tls-ca, or give them to no node.");
}

TEST_CASE("tls: strangers at the port are named by what they sent") {
  const tls_authority authority;
  const auto tls = options(authority.context("here"));
  CHECK(against("GET / HTTP/1.1\r\n\r\n", tls).text ==
        " asks by http where TLS is spoken. Use https.");
  CHECK(against("SSH-2.0-OpenSSH_9.2\r\n", tls).text ==
        " does not speak TLS: it began with \"SSH-2.0-\". Check that it is a poseidon-node with "
        "--tls-cert.");
  const auto gone = against("", tls);
  CHECK(gone.why == refusal::closed);
}

TEST_CASE("tls: a node with too many guests says so in TLS, and one that gives way too") {
  const tls_authority authority;
  const auto tls = options(authority.context("here"));
  test::connection c;
  refuse_busy(*c.acceptor, tls);
  const auto refused = run(*c.dialer, handshake_role::dialer, tls);
  CHECK(refused.why == refusal::busy);
  CHECK(refused.text == c.dialer->peer() +
                            " is checking too many connections at once (TLS alert 80). Try again "
                            "in a few seconds.");

  test::connection d;
  auto guest = tls;
  guest.progress = std::make_shared<handshake_progress>();
  guest.progress->give_way = true;
  d.acceptor->shutdown_reading();
  const auto gives_way = run(*d.acceptor, handshake_role::acceptor, guest);
  CHECK(gives_way.why == refusal::busy);
  CHECK(run(*d.dialer, handshake_role::dialer, tls).why == refusal::busy);
}

TEST_CASE("tls: a silent peer is refused when the limit of the whole handshake has passed") {
  const tls_authority authority;
  test::connection c;
  auto tls = options(authority.context("here"));
  tls.limit = 20ms;
  const auto out = run(*c.acceptor, handshake_role::acceptor, tls);
  CHECK(out.why == refusal::silent);
}

}  // namespace
}  // namespace poseidon
