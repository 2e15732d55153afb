#include "messages/wire/host_port.hpp"

#include <arpa/inet.h>
#include <charconv>
#include <stdexcept>

namespace poseidon {

host_port parse_host_port(std::string_view text) {
  const auto bad = [&](const char* why) {
    return std::invalid_argument(
        "address \"" + std::string(text) + "\": " + why +
        ". Write host:port, for example 10.0.0.7:7600, head:7600 or [fe80::1]:7600.");
  };
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) throw bad("the port is missing");
  auto host = text.substr(0, colon);
  const auto digits = text.substr(colon + 1);
  unsigned port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size() ||
      port > 65535)
    throw bad("the port is not a number from 0 to 65535");
  if (host.starts_with('[')) {
    if (!host.ends_with(']') || host.size() < 3) throw bad("the bracket is not closed");
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    throw bad("an IPv6 address needs brackets");
  }
  return {std::string(host), static_cast<std::uint16_t>(port)};
}

std::string to_string(const host_port& a) {
  const bool v6 = a.host.find(':') != std::string::npos;
  return (v6 ? "[" + a.host + "]" : a.host) + ":" + std::to_string(a.port);
}

bool is_loopback(const host_port& a) {
  in_addr v4{};
  if (::inet_pton(AF_INET, a.host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  return a.host == "::1" || a.host == "localhost";
}

std::string numeric_note(const std::string& listens, const std::string& bound) {
  if (bound.empty() || is_any_address(parse_host_port(listens))) return {};
  const auto numeric = parse_host_port(bound).host;
  return numeric == parse_host_port(listens).host ? std::string() : " (" + numeric + ")";
}

std::string why_unreachable(const std::string& listens, const std::string& bound) {
  if (bound.empty()) return {};
  const auto at = parse_host_port(listens), there = parse_host_port(bound);
  if (is_any_address(at) || is_loopback(at) || !is_loopback(there)) return {};
  return "--listen " + listens + ": on this machine the name " + at.host + " means " + there.host +
         ", so no other machine can reach this node. /etc/hosts says so, as Debian writes it for a "
         "machine's own name. Listen on 0.0.0.0:" +
         std::to_string(at.port) + ", or on the machine's address in its network";
}

bool is_any_address(const host_port& a) {
  return a.host.empty() || a.host == "*" || a.host == "0.0.0.0" || a.host == "::";
}

}  // namespace poseidon
