#include "actors/routes/replanner.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace poseidon {

namespace {

using namespace std::chrono_literals;

// Factor between two reports that confirm each other. A report from the time in which the rate changed lies between the
// old rate and the new one.
constexpr double alike = 1.25;
// Smallest relative change of the rate for which routes are decided again.
constexpr double noticed = 0.3;
// Factor between a node's first reading and the rate for which routes were chosen, if nothing has changed.
constexpr double same_line = 2;
constexpr double worth_it = 0.05;    // least saving, as a fraction of an iteration
constexpr auto least_wait = 2000ms;  // between two changes
constexpr int waits_per_pause = 20;

}  // namespace

replanner::replanner(std::vector<route_load> loads, route_rates rates, double node_mbit_s,
                     std::vector<bool> factors)
    : loads_(std::move(loads)),
      rates_(std::move(rates)),
      chosen_at_mbit_s_(node_mbit_s),
      per_mbit_s_(rates_.link_mbit_s / node_mbit_s),
      factors_(std::move(factors)) {}

std::optional<double> replanner::rate_now() const {
  std::optional<double> least;
  for (const auto& [worker, rate] : heard_)
    if (rate.counts) least = std::min(least.value_or(*rate.counts), *rate.counts);
  return least;
}

std::optional<replanner::proposal> replanner::hear(worker_id from, double mbit_s, bool probed,
                                                   time_point now) {
  auto& of_node = heard_[from];
  const auto last = std::exchange(probed ? of_node.last_probed : of_node.last_read, mbit_s);
  if (std::max(last, mbit_s) <= alike * std::min(last, mbit_s)) {
    if (!probed && of_node.reads_as == 0) {
      const auto reads = chosen_at_mbit_s_ / mbit_s;
      of_node.reads_as = reads < same_line && reads > 1 / same_line ? reads : 1;
    }
    of_node.counts = mbit_s * (probed ? 1 : of_node.reads_as);
  }
  if (changing_ || (not_before_ && now < *not_before_)) return std::nullopt;
  const auto rate = rate_now();
  if (!rate || std::abs(*rate / chosen_at_mbit_s_ - 1) < noticed) return std::nullopt;
  rates_.link_mbit_s = *rate * per_mbit_s_;
  std::vector<bool> better(loads_.size());
  for (const auto& d : decide_routes(loads_, rates_))
    better[d.layer] = d.chosen == route::factor_broadcast;
  if (better == factors_) return std::nullopt;
  const auto stay = forecast(loads_, rates_, factors_);
  const auto saved = stay.routes_ms - forecast(loads_, rates_, better).routes_ms;
  if (saved < worth_it * stay.iteration_ms) return std::nullopt;
  changing_ = true;
  proposed_ = better;
  proposed_at_mbit_s_ = *rate;
  return proposal{better, describe(*rate, better, saved / stay.iteration_ms)};
}

std::string replanner::describe(double mbit_s, const std::vector<bool>& factors,
                                double gain) const {
  std::string moved;
  for (std::size_t l = 0; l < loads_.size(); ++l)
    if (factors[l] != factors_[l])
      moved +=
          (moved.empty() ? "" : ", ") + loads_[l].name + " to " +
          std::string(to_string(factors[l] ? route::factor_broadcast : route::parameter_server));
  return "a node's links carry " + std::to_string(std::lround(mbit_s)) +
         " Mbit/s together now, and carried " + std::to_string(std::lround(chosen_at_mbit_s_)) +
         " when routes were chosen: " + moved + " is to save " +
         std::to_string(std::lround(100 * gain)) + " % of an iteration";
}

void replanner::changed(std::chrono::milliseconds paused, time_point now) {
  if (!std::exchange(changing_, false)) return;
  factors_ = proposed_;
  chosen_at_mbit_s_ = proposed_at_mbit_s_;
  not_before_ = now + std::max<std::chrono::milliseconds>(least_wait, waits_per_pause * paused);
  heard_.clear();
}

}  // namespace poseidon
