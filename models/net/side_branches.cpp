#include "models/net/side_branches.hpp"

#include "models/net/parameter_groups.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace poseidon {

namespace {

/// A bit for each end of the net, a layer whose tops nobody takes.
using ends = std::uint64_t;

/// By layer: the ends behind it. Nothing where they are more than `ends` has bits.
std::optional<std::vector<ends>> ends_behind(const net& n) {
  std::vector<std::vector<std::size_t>> consumers(n.layers.size());
  std::vector<std::optional<std::size_t>> producers(n.blobs.size());
  for (std::size_t l = 0; l < n.layers.size(); ++l) {
    for (const auto blob : n.layers[l].bottoms)
      if (producers[blob]) consumers[*producers[blob]].push_back(l);
    for (const auto blob : n.layers[l].tops) producers[blob] = l;
  }
  std::vector<ends> out(n.layers.size());
  unsigned found = 0;
  for (auto l = n.layers.size(); l-- > 0;) {
    if (consumers[l].empty()) {
      if (found == 64) return std::nullopt;
      out[l] = ends{1} << found++;
    }
    for (const auto next : consumers[l]) out[l] |= out[next];
  }
  return out;
}

ends of_all(const std::vector<std::size_t>& layers, const std::vector<ends>& behind) {
  ends out = 0;
  for (const auto l : layers) out |= behind[l];
  return out;
}

}  // namespace

std::vector<bool> groups_that_run_ahead(const net& n) {
  const auto groups = parameter_groups(n);
  const auto behind = ends_behind(n);
  if (!behind) return std::vector<bool>(groups.size(), true);
  std::vector<ends> read_before;  // of each group that is learned
  for (const auto& g : groups)
    if (!g.learned.empty()) read_before.push_back(of_all(g.layers, *behind));
  std::vector<bool> out;
  for (const auto& g : groups) {
    const auto waited_for = of_all(g.writers, *behind);
    out.push_back(!g.learned.empty() && std::any_of(read_before.begin(), read_before.end(),
                                                    [&](ends e) { return (e & waited_for) == 0; }));
  }
  return out;
}

}  // namespace poseidon
