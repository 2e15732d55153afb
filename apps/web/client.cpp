#include "apps/web/client.hpp"

#include "actors/socket.hpp"

#include <array>
#include <chrono>
#include <stdexcept>

namespace poseidon::web {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t most_bytes = 64u << 20;

/// Everything until the other side closes, as it was asked to.
std::string read_all(tcp_socket& s, const std::string& name) {
  std::string all;
  std::array<char, 16384> some;
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (std::chrono::steady_clock::now() < deadline && all.size() < most_bytes) {
    iovec part{some.data(), some.size()};
    const auto n = s.read_some({&part, 1}, 1000ms);
    if (!n) continue;
    if (*n == 0) return all;
    all.append(some.data(), *n);
  }
  throw std::runtime_error(name +
                           " does not answer. Is it the address of a page (poseidon-node --web)?");
}

}  // namespace

std::string fetch(const host_port& from, const std::string& path, const std::string& token) {
  const auto name = to_string(from);
  const auto socket = connect_to(from, 5000ms);
  auto request = "GET " + path + " HTTP/1.1\r\nHost: " + name + "\r\nConnection: close\r\n";
  if (!token.empty()) request += "Authorization: Bearer " + token + "\r\n";
  request += "\r\n";
  socket->write(std::as_bytes(std::span(request)));
  const auto answer = read_all(*socket, name);
  const auto end = answer.find("\r\n\r\n");
  if (!answer.starts_with("HTTP/1.1 ") || end == std::string::npos)
    throw std::runtime_error(name +
                             " is no page of a node: it answers with something else than HTTP.");
  const auto status = answer.substr(9, 3);
  auto body = answer.substr(end + 4);
  if (status == "200") return body;
  if (status == "401")
    throw std::runtime_error(
        name +
        " wants a token: give --web-token-file FILE, whose first line is that of the node's.");
  while (!body.empty() && body.back() == '\n') body.pop_back();
  throw std::runtime_error(name + " answers " + status + " to " + path + ": " + body);
}

}  // namespace poseidon::web
