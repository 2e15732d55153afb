#include "data/batch_shares.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <stdexcept>

namespace poseidon {

bool uneven(const node_shares& shares) {
  return std::any_of(shares.begin(), shares.end(), [&](const node_share& s) {
    return s != shares.front() || s.samples % s.replicas != 0;
  });
}

std::uint64_t samples_of_clock(const node_share& share) {
  return share.passes * share.samples;
}

std::uint64_t samples_of_all(const node_shares& shares) {
  return std::accumulate(shares.begin(), shares.end(), std::uint64_t{0},
                         [](auto sum, const auto& s) { return sum + samples_of_clock(s); });
}

std::uint64_t samples_of(const node_share& share, std::uint32_t replica) {
  return share.samples / share.replicas + (replica < share.samples % share.replicas ? 1 : 0);
}

std::uint64_t samples_before(const node_share& share, std::uint32_t replica) {
  return share.samples / share.replicas * replica +
         std::min<std::uint64_t>(replica, share.samples % share.replicas);
}

node_shares shares_by_weight(std::uint64_t total, std::span<const double> weights,
                             std::span<const std::uint32_t> replicas) {
  if (weights.size() != replicas.size())
    throw std::invalid_argument("there are " + std::to_string(weights.size()) + " weights for " +
                                std::to_string(replicas.size()) + " nodes");
  for (const auto w : weights)
    if (!std::isfinite(w) || w <= 0)
      throw std::invalid_argument("a weight is " + std::to_string(w) +
                                  ", it has to be above 0: every node takes part");
  const auto least = std::accumulate(replicas.begin(), replicas.end(), std::uint64_t{0});
  if (total < least)
    throw std::invalid_argument(
        "the batches of all nodes together are " + std::to_string(total) + " samples, and their " +
        std::to_string(least) +
        " replicas need at least one each. Choose a larger batch_size, or fewer replicas with "
        "--devices");
  // A node that would get less than its minimum gets the minimum, and the others divide the rest; repeated until all have it.
  std::vector<bool> at_least(weights.size());
  double sum = 0;
  std::uint64_t left = total;
  for (bool again = true; again;) {
    again = false;
    sum = 0;
    left = total;
    for (std::size_t w = 0; w < weights.size(); ++w)
      at_least[w] ? void(left -= replicas[w]) : void(sum += weights[w]);
    for (std::size_t w = 0; w < weights.size(); ++w)
      if (!at_least[w] && static_cast<double>(left) * (weights[w] / sum) < replicas[w])
        again = at_least[w] = true;
  }
  node_shares out;
  std::vector<std::pair<double, std::size_t>> remainders;
  auto unshared = left;
  for (std::size_t w = 0; w < weights.size(); ++w) {
    out.push_back({replicas[w], replicas[w]});
    if (at_least[w]) continue;
    const auto quota = static_cast<double>(left) * (weights[w] / sum);
    out[w].samples = std::min(unshared, static_cast<std::uint64_t>(quota));
    unshared -= out[w].samples;
    remainders.emplace_back(quota - std::floor(quota), w);
  }
  std::stable_sort(remainders.begin(), remainders.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (std::size_t i = 0; unshared > 0; ++i, --unshared)
    ++out[remainders[i % remainders.size()].second].samples;
  return out;
}

std::string describe_share(std::uint64_t samples, std::uint64_t of) {
  char percent[16];
  std::snprintf(percent, sizeof percent, "%.0f",
                100 * static_cast<double>(samples) / static_cast<double>(of));
  return std::to_string(samples) + " of " + std::to_string(of) + " (" + percent + " %)";
}

share_option parse_shares(const std::string& text, std::size_t nodes) {
  if (text == "equal") return {};
  const auto refuse = [&](const std::string& why) -> std::invalid_argument {
    return std::invalid_argument("--batch-share " + text + ": " + why);
  };
  if (nodes < 2) throw refuse("shares are of several nodes. Give --nodes N with N >= 2.");
  share_option parsed;
  if (text == "auto") {
    parsed.what = share_option::kind::automatic;
    return parsed;
  }
  parsed.what = share_option::kind::weights;
  for (std::size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find(',', at), text.size());
    double weight = 0;
    const auto [rest, failed] = std::from_chars(text.data() + at, text.data() + end, weight);
    if (failed != std::errc{} || rest != text.data() + end || !std::isfinite(weight))
      throw refuse("\"" + text.substr(at, end - at) +
                   "\" is no number. Give equal, auto, or a weight for each node with commas "
                   "between them, as in 3,1.");
    if (weight <= 0)
      throw refuse("worker " + std::to_string(parsed.weights.size()) + " has the weight " +
                   text.substr(at, end - at) +
                   ", it has to be above 0. A node that is to compute nothing need not join.");
    parsed.weights.push_back(weight);
    at = end + 1;
  }
  if (parsed.weights.size() != nodes)
    throw refuse("there are " + std::to_string(parsed.weights.size()) + " weights for --nodes " +
                 std::to_string(nodes) + ". Give one for each node, the first node's first.");
  return parsed;
}

}  // namespace poseidon
