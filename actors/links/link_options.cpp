#include "actors/links/link_options.hpp"

namespace poseidon {

std::string peer_name(seat_id peer, const std::string& address) {
  if (peer == no_seat) return "a joining node (" + address + ")";
  return "worker " + std::to_string(value(peer)) + " (" + address + ")";
}

}  // namespace poseidon
