#include "actors/links/link_counters.hpp"

#include "models/words.hpp"

namespace poseidon {

bool heard_after_a_gap(const link_counters& counters, std::chrono::steady_clock::time_point now) {
  constexpr std::chrono::seconds long_enough{10};
  const std::chrono::steady_clock::duration gap_ended{counters.gap_ended_at.load()};
  return gap_ended.count() != 0 && now.time_since_epoch() - gap_ended < long_enough;
}

std::string describe_traffic(const std::string& peer, const link_counters& c) {
  return "link to " + peer + ": " + megabytes(c.bytes_out) + " in " + std::to_string(c.frames_out) +
         " frames out, " + megabytes(c.bytes_in) + " in " + std::to_string(c.frames_in) +
         " frames in";
}

}  // namespace poseidon
