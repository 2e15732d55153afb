// tests/messages/tls_rig.hpp - two ends of one connection, and TLS between them.
#pragma once
#include "messages/wire/socket.hpp"
#include "tests/tls_authority.hpp"

#include <doctest/doctest.h>

#include <future>
#include <memory>
#include <string>
#include <utility>

namespace poseidon::test {

inline constexpr std::chrono::seconds patience{60};

inline std::string error_of(auto&& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "no error";
}

inline std::chrono::steady_clock::time_point soon() {
  return std::chrono::steady_clock::now() + patience;
}

struct connection {
  tcp_listener listener{{"127.0.0.1", 0}};
  std::shared_ptr<tcp_socket> dialer = connect_to({"127.0.0.1", listener.port()}, patience);
  std::shared_ptr<tcp_socket> acceptor = listener.accept(patience);
};

/// Both ends with TLS, as two nodes of one cluster.
struct encrypted : connection {
  explicit encrypted(std::uint64_t key_lasts = tls_channel::records_per_key) {
    const tls_authority authority;
    dialer->use_tls(*authority.context("dialer"), tls_side::dials, key_lasts);
    acceptor->use_tls(*authority.context("acceptor"), tls_side::accepts, key_lasts);
    auto there = std::async(std::launch::async, [&] { acceptor->shake_tls(soon()); });
    dialer->shake_tls(soon());
    there.get();
  }
};

inline std::string read_all(tcp_socket& s) {
  std::string out;
  char some[4096];
  for (;;) {
    iovec part{some, sizeof some};
    const auto n = s.read_some(std::span(&part, 1), patience);
    REQUIRE(n);
    if (*n == 0) return out;
    out.append(some, *n);
  }
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace poseidon::test
