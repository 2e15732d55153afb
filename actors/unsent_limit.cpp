#include "actors/unsent_limit.hpp"

#include <algorithm>

namespace poseidon {

namespace {

constexpr double unsent_s = 0.008, piece_s = 0.004;  // of the line
constexpr double keeps = 0.9;  // of the best rate, from one hearing to the next
constexpr std::size_t granule = 4096;

std::size_t within(double bytes, std::size_t least, std::size_t most) {
  if (bytes >= static_cast<double>(most)) return most;
  return std::max(least, static_cast<std::size_t>(bytes) / granule * granule);
}

}  // namespace

unsent_limit::bytes unsent_limit::heard(double delivered_bytes_s) {
  best_bytes_s_ = std::max(delivered_bytes_s, keeps * best_bytes_s_);
  if (best_bytes_s_ <= 0) return most;
  return {within(unsent_s * best_bytes_s_, least.unsent, most.unsent),
          within(piece_s * best_bytes_s_, least.piece, most.piece)};
}

}  // namespace poseidon
