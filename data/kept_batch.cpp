#include "data/kept_batch.hpp"

#include "models/words.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace poseidon {

namespace {

/// So that no product of samples and nodes overflows, and passes have a number.
constexpr std::uint64_t most_samples = 1 << 30;

/// Nodes with the same number of passes.
struct group {
  std::uint64_t nodes = 0;
  std::uint64_t passes = 0;   ///< of each of them
  std::uint64_t samples = 0;  ///< of one pass, over all of them

  [[nodiscard]] std::uint64_t largest_share() const {
    return nodes == 0 ? 0 : passes * ((samples + nodes - 1) / nodes);
  }
};

struct split {
  group more, fewer;  ///< passes

  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> cost() const {
    return {std::max(more.largest_share(), fewer.largest_share()),
            more.nodes * more.passes + fewer.nodes * fewer.passes};
  }
};

/// `more` nodes take `passes` + 1 passes, the `others` take `passes`: how many samples the first ones have in a pass is chosen, near
/// an equal part for each node, so that a multiple of `passes` is left for the others.
void try_passes(const kept_batch& kept, std::uint64_t passes, std::uint64_t more,
                std::uint64_t others, std::optional<split>& best) {
  const auto total = kept.samples;
  const auto most_of_others = passes * others * kept.batch;
  const auto least_of_others = passes * others * kept.replicas;
  if (total < least_of_others) return;
  const auto too_many = total - std::min(total, most_of_others);
  const auto least = std::max(more * kept.replicas, (too_many + passes) / (passes + 1));
  const auto most = std::min(more * kept.batch, (total - least_of_others) / (passes + 1));
  if (least > most) return;
  const auto near = std::clamp(total * more / ((more + others) * (passes + 1)), least, most);
  const auto above = near + (total % passes + passes - near % passes) % passes;
  for (const auto first : {above, above - std::min(above, passes)}) {
    if (first < least || first > most || first % passes != total % passes) continue;
    const split s{{more, passes + 1, first},
                  {others, passes, (total - (passes + 1) * first) / passes}};
    if (!best || s.cost() < best->cost()) best = s;
  }
}

void append(const group& of, const kept_batch& kept, node_shares& out) {
  for (std::uint64_t n = 0; n < of.nodes; ++n)
    out.push_back({of.samples / of.nodes + (n < of.samples % of.nodes ? 1 : 0), kept.replicas,
                   static_cast<std::uint32_t>(of.passes)});
}

void check(const kept_batch& kept, std::size_t nodes) {
  const auto refuse = [&](const std::string& why) {
    throw std::invalid_argument(
        "it is " + plural(static_cast<std::size_t>(kept.samples), "sample") + ", and " + why);
  };
  const auto replicas = plural(kept.replicas, "replica");
  if (kept.samples > most_samples)
    refuse("an iteration has " + std::to_string(most_samples) + " at most. Choose a smaller one");
  if (kept.samples % kept.batch != 0)
    refuse("the net's batch of " + std::to_string(kept.batch) +
           " does not divide this number. Choose a batch_size that does, or --global-batch scale");
  if (kept.batch < kept.replicas)
    refuse("the net's batch of " + std::to_string(kept.batch) + " has no sample for each of " +
           replicas + ". Choose fewer replicas with --devices");
  if (kept.samples < nodes * kept.replicas)
    refuse(plural(nodes, "node") + " with " + replicas +
           " each need at least one for each replica. Choose fewer nodes, fewer replicas with "
           "--devices, or --global-batch scale");
}

}  // namespace

node_shares shares_of(const kept_batch& kept, std::size_t nodes) {
  check(kept, nodes);
  const auto fewest = kept.samples / kept.batch / nodes;  // passes of the net's batch
  std::optional<split> best;
  for (const auto passes : {fewest, fewest + 1})
    for (std::uint64_t more = 0; passes > 0 && more < nodes; ++more)
      try_passes(kept, passes, more, nodes - more, best);
  node_shares out;
  append(best->more, kept, out);
  append(best->fewer, kept, out);
  return out;
}

}  // namespace poseidon
