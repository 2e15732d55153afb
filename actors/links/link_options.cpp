#include "actors/links/link_options.hpp"

#include <cstdio>

namespace poseidon {

std::string seconds_text(std::chrono::steady_clock::duration d) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", std::chrono::duration<double>(d).count());
  return text;
}

std::string peer_name(seat_id peer, const std::string& address) {
  if (peer == no_seat) return "a joining node (" + address + ")";
  return "worker " + std::to_string(value(peer)) + " (" + address + ")";
}

}  // namespace poseidon
