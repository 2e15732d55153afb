#include "actors/cluster/batch_split.hpp"

namespace poseidon {

std::size_t batch_split::timed(seat_id node, const frames::net_timed& speed) {
  timed_[node] = speed;
  return timed_.size();
}

std::vector<std::uint32_t> batch_split::replicas() const {
  std::vector<std::uint32_t> out;
  for (const auto& [node, speed] : timed_) out.push_back(speed.replicas);
  return out;
}

std::vector<double> batch_split::samples_s() const {
  std::vector<double> out;
  for (const auto& [node, speed] : timed_) out.push_back(speed.samples_s);
  return out;
}

std::optional<std::pair<seat_id, std::uint32_t>> batch_split::other_number(
    std::uint32_t own) const {
  for (const auto& [node, replicas] : ready_)
    if (replicas != own) return std::pair{node, replicas};
  return std::nullopt;
}

}  // namespace poseidon
