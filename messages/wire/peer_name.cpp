#include "messages/wire/peer_name.hpp"

#include "messages/wire/codec.hpp"

namespace poseidon {

std::string peer_name(seat_id peer, const std::string& address, peer_kind kind) {
  const bool votes = kind == peer_kind::witness;
  if (peer == no_seat) return (votes ? "a joining witness (" : "a joining node (") + address + ")";
  return (votes ? "witness " : "worker ") + std::to_string(value(peer)) + " (" + address + ")";
}

}  // namespace poseidon
