#include "apps/web/http.hpp"

#include <doctest/doctest.h>

using namespace poseidon::web;

namespace {

parsed read(const std::string& head, const host_rule& hosts = {}) {
  return parse_head(head, hosts);
}

int refused(const std::string& head, const host_rule& hosts = {}) {
  const auto p = read(head, hosts);
  return p.ok ? 0 : p.refused.status;
}

}  // namespace

TEST_CASE("http: a request is its path, its query and two headers") {
  const auto p = read(
      "GET /api/graph?node=1&x=a%20b HTTP/1.1\r\nHost: localhost:7680\r\n"
      "COOKIE: poseidon=t\r\nAuthorization:Bearer u");
  REQUIRE(p.ok);
  CHECK(p.ok->path == "/api/graph");
  CHECK(p.ok->number("node", 9) == 1);
  CHECK(p.ok->number("none", 9) == 9);
  CHECK(p.ok->parameter("x") == "a b");
  CHECK(p.ok->cookie == "poseidon=t");
  CHECK(p.ok->authorization == "Bearer u");
  CHECK(p.ok->keep_alive);
  CHECK_FALSE(read("GET / HTTP/1.1\r\nHost: [::1]:1\r\nConnection: Close").ok->keep_alive);
}

TEST_CASE("http: whoever is asked for under another name is not here (DNS rebinding)") {
  for (const auto* mine :
       {"localhost", "LocalHost:80", "127.0.0.1:7680", "127.9.9.9", "[::1]:7680"})
    CHECK_MESSAGE(refused(std::string("GET / HTTP/1.1\r\nHost: ") + mine) == 0, mine);
  for (const auto* other : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example",
                            "10.0.0.7", "[2001:db8::1]:80", "", "0x7f000001", "localhost@evil"})
    CHECK_MESSAGE(refused(std::string("GET / HTTP/1.1\r\nHost: ") + other) == 421, other);
  host_rule open;
  open.loopback_only = false;
  open.names = {"head"};
  CHECK(refused("GET / HTTP/1.1\r\nHost: 10.0.0.7:7680", open) == 0);
  CHECK(refused("GET / HTTP/1.1\r\nHost: HEAD:1", open) == 0);
  CHECK(refused("GET / HTTP/1.1\r\nHost: evil.example", open) == 421);
}

TEST_CASE("http: exactly one Host") {
  CHECK(refused("GET / HTTP/1.1") == 400);
  CHECK(refused("GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost") == 400);
}

TEST_CASE("http: nothing but GET, and no body") {
  for (const auto* method : {"POST", "PUT", "DELETE", "HEAD", "OPTIONS", "get"})
    CHECK(refused(std::string(method) + " / HTTP/1.1\r\nHost: localhost") == 405);
  CHECK(refused("GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3") == 400);
  CHECK(refused("GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked") == 400);
}

TEST_CASE("http: what is no request is refused, not guessed") {
  for (const auto* odd :
       {"", "GET", "GET /", "GET / HTTP/1.1\r\n: x", "GET / HTTP/1.1\r\nHost : localhost",
        "GET / HTTP/1.1\r\nHost: localhost\r\nfolded"})
    CHECK_MESSAGE(refused(odd) == 400, odd);
  CHECK(refused("GET / HTTP/2.0\r\nHost: localhost") == 505);
  for (const auto* path : {"api", "/%", "/%4", "/%zz", "/%00", "http://x/"})
    CHECK_MESSAGE(refused(std::string("GET ") + path + " HTTP/1.1\r\nHost: localhost") == 400,
                  path);
}

TEST_CASE("http: every answer forbids what a page could be abused for") {
  const auto head = head_of({200, "text/html", "abc", "X: y\r\n"}, true, false);
  for (const auto* line :
       {"HTTP/1.1 200 OK\r\n", "Content-Length: 3\r\n",
        "Content-Security-Policy: default-src 'self';", "frame-ancestors 'none'",
        "X-Content-Type-Options: nosniff\r\n", "X: y\r\n", "Connection: keep-alive\r\n\r\n"})
    CHECK_MESSAGE(head.find(line) != std::string::npos, line);
  CHECK(head.find("Access-Control") == std::string::npos);
  CHECK(head_of({}, true, true).find("Content-Length") == std::string::npos);
}

TEST_CASE("http: secrets are compared as a whole") {
  CHECK(same_secret("abc", "abc"));
  CHECK_FALSE(same_secret("abc", "abd"));
  CHECK_FALSE(same_secret("abc", "ab"));
}
