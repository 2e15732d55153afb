// tests/actors/node/resumed_run.hpp - what a change of the members is compared with: a run that stops at the iteration of the change,
// and is resumed with the members of the next view.
#pragma once
#include "tests/actors/node/node_rig.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace poseidon::test {

/// A run of some nodes that never change, from the state that another one has left, if any.
inline void train_without_a_change(node_rig& t, std::size_t workers, std::uint64_t clocks,
                                   const std::filesystem::path& state = {}) {
  t.clocks = clocks;
  t.resume = state;
  t.cluster(workers);
  t.sim.settle();
  std::string errors;
  for (const auto& n : t.nodes)
    if (!n->error().empty()) errors += n->at + ": " + n->error() + n->display->last_lines() + "\n";
  REQUIRE(errors == "");
}

/// What a run has trained in which `before` nodes train up to `change`, and `after` nodes from there on.
inline std::string resumed_at_the_change(const node_rig& like, std::size_t before,
                                         std::size_t after, std::uint64_t change) {
  node_rig first, second;
  first.more_solver = second.more_solver = like.more_solver;
  first.routes = second.routes = like.routes;
  train_without_a_change(first, before, change);
  train_without_a_change(second, after, like.clocks, first.state(change));
  return second.weights(like.clocks);
}

/// A chain of runs, each with the members of one view, from the state that the one before has left.
class chain {
 public:
  chain(const node_rig& like, const std::vector<progress::view>& views);
  /// What it has trained up to this clock: the last one of a view, or any where each clock has its snapshot.
  [[nodiscard]] std::string weights(std::uint64_t clock) const {
    const auto run =
        std::find_if(runs_.begin(), runs_.end(), [&](const auto& t) { return clock <= t->clocks; });
    REQUIRE(run != runs_.end());
    return (*run)->weights(clock);
  }

 private:
  std::vector<std::unique_ptr<node_rig>> runs_;
};

inline chain::chain(const node_rig& like, const std::vector<progress::view>& views) {
  auto state = like.resume;
  for (std::size_t v = 0; v < views.size(); ++v) {
    const auto end = v + 1 < views.size() ? views[v + 1].first_clock : like.clocks;
    if (end == views[v].first_clock) continue;  // nothing is trained in it
    auto& t = *runs_.emplace_back(std::make_unique<node_rig>());
    t.more_solver = like.more_solver;
    t.routes = like.routes;
    train_without_a_change(t, views[v].seats.size(), end, state);
    state = t.state(end);
  }
}

/// What a chain of runs has trained at the end.
inline std::string chained(const node_rig& like, const std::vector<progress::view>& views) {
  return chain(like, views).weights(like.clocks);
}

}  // namespace poseidon::test
