#include "messages/wire/link_identity.hpp"

#include "messages/wire/little_endian.hpp"
#include "messages/wire/socket.hpp"

#include <algorithm>
#include <span>
#include <stdexcept>

namespace poseidon {

namespace {

constexpr std::size_t at_epoch = 4, at_replicas = 12, at_purpose = 16, at_run = 17, at_address = 25;
constexpr std::size_t at_leader = at_address + 1 + max_address_bytes;
constexpr std::size_t at_fingerprint = at_leader + 1 + max_address_bytes;

void put_address(std::span<std::byte> to, const std::string& address) {
  if (address.size() > max_address_bytes) {
    throw std::invalid_argument("the address \"" + address + "\" has " +
                                std::to_string(address.size()) +
                                " characters, at most 255 can be sent");
  }
  to[0] = static_cast<std::byte>(address.size());
  const auto bytes = std::as_bytes(std::span(address));
  std::copy(bytes.begin(), bytes.end(), to.begin() + 1);
}

std::string get_address(std::span<const std::byte> from) {
  return printable(from.subspan(1, std::to_integer<std::size_t>(from[0])));
}

void put_fingerprint(std::span<std::byte> to, const std::string& text) {
  if (text.size() > max_fingerprint_bytes)
    throw std::invalid_argument("a fingerprint has " + std::to_string(text.size()) +
                                " bytes, at most " + std::to_string(max_fingerprint_bytes) +
                                " can be sent");
  put(to, static_cast<std::uint16_t>(text.size()));
  const auto bytes = std::as_bytes(std::span(text));
  std::copy(bytes.begin(), bytes.end(), to.begin() + 2);
}

std::string get_fingerprint(std::span<const std::byte> from) {
  const auto size = get<std::uint16_t>(from);
  if (size > max_fingerprint_bytes)
    throw std::invalid_argument("says that its fingerprint has " + std::to_string(size) +
                                " bytes, at most " + std::to_string(max_fingerprint_bytes) +
                                " are possible");
  const auto* const text = reinterpret_cast<const char*>(from.data()) + 2;
  return {text, size};
}

}  // namespace

identity_block encode(const link_identity& who) {
  identity_block out{};
  put(std::span(out), value(who.seat));
  put(std::span(out).subspan(at_epoch), who.epoch);
  put(std::span(out).subspan(at_replicas), who.replicas);
  put(std::span(out).subspan(at_run), who.run);
  out[at_purpose] = static_cast<std::byte>(who.wants);
  put_address(std::span(out).subspan(at_address), who.listen_address);
  put_address(std::span(out).subspan(at_leader), who.leader_address);
  put_fingerprint(std::span(out).subspan(at_fingerprint), who.fingerprint);
  return out;
}

link_identity decode_identity(const identity_block& bytes, const std::string& peer_host) {
  link_identity who;
  who.seat = seat_id{get<std::uint32_t>(bytes)};
  who.epoch = get<std::uint64_t>(std::span(bytes).subspan(at_epoch));
  who.run = get<std::uint64_t>(std::span(bytes).subspan(at_run));
  who.replicas = get<std::uint32_t>(std::span(bytes).subspan(at_replicas));
  const auto purpose = std::to_integer<std::uint8_t>(bytes[at_purpose]);
  if (purpose > static_cast<std::uint8_t>(link_identity::purpose::compute))
    throw std::invalid_argument("wants something that this release does not know, number " +
                                std::to_string(purpose));
  who.wants = link_identity::purpose{purpose};
  who.listen_address = get_address(std::span(bytes).subspan(at_address));
  who.leader_address = get_address(std::span(bytes).subspan(at_leader));
  who.fingerprint = get_fingerprint(std::span(bytes).subspan(at_fingerprint));
  try {
    if (!who.leader_address.empty()) (void)parse_host_port(who.leader_address);
    auto at = parse_host_port(who.listen_address);
    if (is_any_address(at)) at.host = peer_host;
    who.listen_address = to_string(at);
  } catch (const std::invalid_argument& e) {
    throw std::invalid_argument(std::string("gives its own address wrongly: ") + e.what());
  }
  return who;
}

std::string name_of(const link_identity& who) {
  if (who.wants == link_identity::purpose::ask_to_leave)
    return "a program that asks this node to leave";
  if (who.wants == link_identity::purpose::ask_to_go_on)
    return "a program that asks this node to go on without others";
  const bool votes = who.wants == link_identity::purpose::witness;
  return (who.seat == no_seat
              ? std::string(votes ? "a joining witness" : "a joining node")
              : (votes ? "witness " : "worker ") + std::to_string(value(who.seat))) +
         ", which listens on " + who.listen_address;
}

}  // namespace poseidon
