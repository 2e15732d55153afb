#include "actors/node/rates.hpp"

#include "actors/node/node.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

namespace poseidon {

void rates::begin() {
  const auto& setup = core_.setup;
  double limit = 0;
  for (const auto l : {setup.cluster.link_mbit_s, setup.cluster.budget_mbit_s})
    if (l > 0) limit = limit > 0 ? std::min(limit, l) : l;
  watch_ = link_watch(setup.run->workers - 1, limit);
}

bool rates::are_of_this_view() const {
  return core_.change.at() == node_stage::training;
}

std::optional<link_watch::rate> rates::on(const link_flow& m) {
  if (!are_of_this_view()) {
    watch_.forget();
    return std::nullopt;
  }
  const auto peer = core_.view().worker_of(m.peer);
  if (peer == no_worker) return std::nullopt;
  return follow(watch_.heard(peer, {m.acked_bytes, m.busy_us, m.hindered_us, m.waited_us},
                             waits_for_a_rise(), std::chrono::steady_clock::now()));
}

/// Factors are broadcast because a line is slow, and then leave it idle: only a question tells when it is not slow any
/// more. Without them nothing depends on a rise, and a line that has become slow fills.
bool rates::waits_for_a_rise() const {
  const auto& setup = core_.setup;
  const auto& run = *setup.run;
  return run.routes_follow_links && setup.cluster.link_mbit_s <= 0 &&
         setup.cluster.budget_mbit_s <= 0 &&
         std::find(run.routes.begin(), run.routes.end(), route::factor_broadcast) !=
             run.routes.end();
}

std::optional<link_watch::rate> rates::probe_heard(worker_id from, std::uint32_t round) {
  return follow(watch_.answered(from, round, std::chrono::steady_clock::now()));
}

std::optional<link_watch::rate> rates::follow(const link_watch::advice& a) const {
  if (a.probe)
    for (const auto& f : frames_of(*a.probe, std::numeric_limits<std::uint64_t>::max()))
      core_.members.broadcast(f);
  return are_of_this_view() ? a.tell : std::nullopt;
}

}  // namespace poseidon
