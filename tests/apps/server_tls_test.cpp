// The page by https, and what a client hears that comes the other way.
#include "apps/web/client.hpp"
#include "apps/web/server.hpp"
#include "apps/web/token.hpp"
#include "tests/tls_authority.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace poseidon;
using namespace poseidon::web;
using test::tls_authority;

namespace {

constexpr std::chrono::seconds deadline{60};

class small_site : public site {
 public:
  answer get(const request& r) override {
    if (r.path == "/long") return {{200, "text/plain", std::string(3 << 20, 'x'), ""}, {}};
    if (r.path == "/events") return {{200, "text/event-stream", "", ""}, std::make_unique<count>()};
    return {{200, "text/plain", "you are at " + r.path, ""}, {}};
  }

 private:
  struct count : feed {
    int number = 0;
    std::string next() override { return "data: " + std::to_string(number++) + "\n\n"; }
  };
};

std::unique_ptr<server> serve(std::shared_ptr<const tls_context> tls) {
  server_options o;
  o.at = {"127.0.0.1", 0};
  o.tick = std::chrono::milliseconds{5};
  o.tls = std::move(tls);
  return std::make_unique<server>(std::move(o), std::make_shared<small_site>());
}

std::string error_of(auto&& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "no error";
}

/// What a client without TLS is answered.
std::string plain_answer(const host_port& at, const std::string& request) {
  auto s = connect_to(at, deadline);
  s->write(std::as_bytes(std::span(request)));
  std::string out;
  char some[4096];
  for (;;) {
    iovec part{some, sizeof some};
    const auto n = s->read_some(std::span(&part, 1), deadline);
    REQUIRE(n);
    if (*n == 0) return out;
    out.append(some, *n);
  }
}

TEST_CASE("server: by https a reader with the authority gets the page, long answers and streams") {
  const tls_authority authority;
  const auto page = serve(authority.context("page"));
  CHECK(page->url() == "https://" + to_string(page->address()) + "/");
  const page_address from{page->address(), "", authority.reader()};
  CHECK(fetch(from, "/a") == "you are at /a");
  CHECK(fetch(from, "/long") == std::string(3 << 20, 'x'));
  event_stream events(from, "/events", nullptr);
  std::string seen;
  while (seen.find("data: 3\n\n") == std::string::npos) seen += events.next();
  CHECK(seen.starts_with("data: 0\n\n"));
  // A node's own certificate does no harm: it is not asked for.
  CHECK(fetch({page->address(), "", authority.context("node")}, "/b") == "you are at /b");
}

TEST_CASE("server: by https a reader that trusts another authority is told so") {
  const tls_authority ours, others("another cluster");
  const auto page = serve(ours.context("page"));
  const auto error = error_of([&] { (void)fetch({page->address(), "", others.reader()}, "/"); });
  CHECK(error.starts_with(to_string(page->address()) + " has a certificate that (of /CN=page"));
  CHECK(fetch({page->address(), "", ours.reader()}, "/c") == "you are at /c");
}

TEST_CASE("server: http where https is spoken is answered with the address") {
  const tls_authority authority;
  const auto page = serve(authority.context("page"));
  const auto got = plain_answer(page->address(), "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(got.starts_with("HTTP/1.1 400 "));
  CHECK(got.ends_with("\r\n\r\nthis page is encrypted: open " + page->url() +
                      " in a browser, give a program --tls-ca\n"));
  CHECK(error_of([&] {
          (void)fetch({page->address(), ""}, "/api/status");
        }) == to_string(page->address()) +
                  " answers 400 to /api/status: this page is encrypted: open " + page->url() +
                  " in a browser, give a program --tls-ca");
}

TEST_CASE("server: https where http is spoken is said by the client") {
  const tls_authority authority;
  const auto page = serve(nullptr);
  CHECK(page->url() == "http://" + to_string(page->address()) + "/");
  CHECK(error_of([&] {
          (void)fetch({page->address(), "", authority.reader()}, "/");
        }) == to_string(page->address()) +
                  " serves its page without TLS. Leave out --tls-ca, or give that node --tls-cert, "
                  "--tls-key and --tls-ca.");
}

TEST_CASE("server: by https silent, half and broken clients keep no other one waiting") {
  const tls_authority authority;
  const auto page = serve(authority.context("page"));
  std::vector<std::shared_ptr<tcp_socket>> others;
  for (const std::string& start :
       {std::string(), std::string("\x16\x03\x01\x02\x00\x01\x00", 7), std::string("nonsense")}) {
    others.push_back(connect_to(page->address(), deadline));
    others.back()->write(std::as_bytes(std::span(start)));
  }
  CHECK(fetch({page->address(), "", authority.reader()}, "/d") == "you are at /d");
}

TEST_CASE("server: by https too many connections are told so, when they have spoken") {
  const tls_authority authority;
  server_options o;
  o.at = {"127.0.0.1", 0};
  o.tls = authority.context("page");
  o.most_per_address = 0;
  const server page(std::move(o), std::make_shared<small_site>());
  CHECK(error_of([&] {
          (void)fetch({page.address(), "", authority.reader()}, "/");
        }).find(" answers 503 to /: too many connections from 127.0.0.1, at most 0") !=
        std::string::npos);
}

TEST_CASE("token: a redirect leads to this page alone, and by https its cookie is for https") {
  const token_gate gate("secret", true);
  request r;
  r.query = "token=secret";
  r.path = "/a b\r\nSet-Cookie: x=y";
  CHECK(gate.refusal(r)->extra ==
        "Location: /a%20b%0D%0ASet-Cookie%3A%20x%3Dy\r\nSet-Cookie: poseidon=secret; HttpOnly; "
        "SameSite=Strict; Path=/; Secure\r\n");
  r.path = "//evil.example/x";
  CHECK(gate.refusal(r)->extra.starts_with("Location: /evil.example/x\r\n"));
  CHECK(token_gate("secret").refusal(r)->extra.find("Secure") == std::string::npos);
}

}  // namespace
