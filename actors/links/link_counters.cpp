#include "actors/links/link_counters.hpp"

#include "models/words.hpp"

namespace poseidon {

std::string describe_traffic(const std::string& peer, const link_counters& c) {
  return "link to " + peer + ": " + megabytes(c.bytes_out) + " in " + std::to_string(c.frames_out) +
         " frames out, " + megabytes(c.bytes_in) + " in " + std::to_string(c.frames_in) +
         " frames in";
}

}  // namespace poseidon
