// tests/apps/served.hpp - small sites, and what a client reads of them.
#pragma once
#include "apps/web/server.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <span>
#include <string>

namespace poseidon::web::test {

constexpr std::chrono::milliseconds deadline{20000};

/// Writes `head` on a new connection.
inline std::shared_ptr<tcp_socket> ask(const server& s, const std::string& head) {
  auto socket = connect_to(s.address(), deadline);
  socket->write(std::as_bytes(std::span(head)));
  return socket;
}

/// The bytes received until the other side closes, `enough` is seen, or the deadline has passed.
inline std::string read_until(tcp_socket& socket, const std::string& enough = "") {
  std::string out;
  char buffer[65536];
  while (enough.empty() || out.find(enough) == std::string::npos) {
    iovec part{buffer, sizeof buffer};
    const auto n = socket.read_some(std::span(&part, 1), deadline);
    REQUIRE(n.has_value());
    if (*n == 0) break;
    out.append(buffer, *n);
  }
  return out;
}

inline std::string get(const server& s, const std::string& path, const std::string& more = "",
                       const std::string& host = "localhost") {
  auto socket = ask(s, "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n" +
                           more + "\r\n");
  return read_until(*socket);
}

inline bool answers(const std::string& got, int status) {
  return got.starts_with("HTTP/1.1 " + std::to_string(status) + " ");
}

class counting_feed : public feed {
 public:
  std::string next() override {
    return "data: " + std::to_string(count_++) + std::string(padding_, 'x') + "\n\n";
  }
  explicit counting_feed(std::size_t padding) : padding_(padding) {}

 private:
  std::size_t count_ = 0, padding_;
};

class small_site : public site {
 public:
  explicit small_site(std::size_t padding = 0) : padding_(padding) {}
  answer get(const request& r) override {
    if (r.path == "/events")
      return {{200, "text/event-stream", "", ""}, std::make_unique<counting_feed>(padding_)};
    return {{200, "text/plain", "you are at " + r.path, ""}, {}};
  }

 private:
  std::size_t padding_;
};

inline server_options quick() {
  server_options o;
  o.at = {"127.0.0.1", 0};
  o.tick = std::chrono::milliseconds{5};
  return o;
}

}  // namespace poseidon::web::test
