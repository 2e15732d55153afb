// messages/wire/host_port.hpp - where a node can be reached, as users write it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace poseidon {

/// "head:7600", "10.0.0.7:7600", "[fe80::1]:7600", ":7600" (every address of this machine).
struct host_port {
  std::string host;  ///< without brackets; may be empty
  std::uint16_t port = 0;
};
/// Errors   std::invalid_argument with the text and what an address looks like.
[[nodiscard]] host_port parse_host_port(std::string_view text);
[[nodiscard]] std::string to_string(const host_port& a);  ///< with brackets around an IPv6 host
/// Whether only this machine can reach it: 127.0.0.0/8, ::1, localhost.
[[nodiscard]] bool is_loopback(const host_port& a);
/// " (10.0.0.7)" where a node listens at a name, and its system has bound another text, `bound`; empty: the two say the same, or
/// nothing is known.
[[nodiscard]] std::string numeric_note(const std::string& listens, const std::string& bound);
/// A name that means this machine alone (Debian writes a machine's own name as 127.0.1.1 into /etc/hosts): what is wrong, and what to do.
/// Empty: nothing, or the user has named the loopback itself.
[[nodiscard]] std::string why_unreachable(const std::string& listens, const std::string& bound);
/// Whether it stands for every address of the machine: "", 0.0.0.0, ::, *.
[[nodiscard]] bool is_any_address(const host_port& a);

}  // namespace poseidon
