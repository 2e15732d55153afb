#include "actors/core/progress.hpp"

#include "models/words.hpp"

namespace poseidon {

std::string progress::describe(const view& v) {
  const bool one = v.seats.size() == 1;
  return "view " + std::to_string(v.epoch) + ": " + (v.changed.empty() ? "" : v.changed + "; ") +
         plural(v.seats.size(), "node") + (one ? " trains" : " train") + " from iteration " +
         std::to_string(v.first_clock) + " on" +
         (v.samples == 0
              ? ""
              : ", " + plural(static_cast<std::size_t>(v.samples), "sample") + " an iteration") +
         (v.witnesses.empty() ? ""
                              : ", with " + std::to_string(v.witnesses.size()) +
                                    (v.witnesses.size() == 1 ? " witness" : " witnesses")) +
         (v.changed.empty() ? "" : ", after a pause of " + std::to_string(v.paused_ms) + " ms");
}

}  // namespace poseidon
