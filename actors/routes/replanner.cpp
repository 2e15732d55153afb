#include "actors/routes/replanner.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace poseidon {

namespace {

using namespace std::chrono_literals;

// Factor between reports that confirm each other. A report from the time in which the rate changed lies between the
// old rate and the new one.
constexpr double alike = 1.25;
// Factor between a node's first reading and the rate for which routes were chosen, if nothing has changed.
constexpr double same_line = 2;
constexpr double worth_it = 0.05;    // least saving, as a fraction of an iteration
constexpr auto least_wait = 2000ms;  // between two changes
constexpr int waits_per_pause = 20;
constexpr int most_doublings = 5;
// What a change has to save until the run ends, in pauses.
constexpr double least_return = 2;

/// The least and the greatest of reports that confirm each other; empty: they do not.
template <class Reports>
std::optional<std::pair<double, double>> confirmed(const Reports& reports) {
  const auto [least, greatest] = std::minmax_element(reports.begin(), reports.end());
  if (*greatest > alike * *least) return std::nullopt;
  return std::pair{*least, *greatest};
}

}  // namespace

replanner::replanner(std::vector<route_load> loads, route_rates rates, double node_mbit_s,
                     std::vector<bool> factors)
    : loads_(std::move(loads)),
      rates_(std::move(rates)),
      chosen_at_mbit_s_(node_mbit_s),
      per_mbit_s_(rates_.link_mbit_s / node_mbit_s),
      factors_(std::move(factors)) {}

std::optional<replanner::rate_range> replanner::rate_now() const {
  std::optional<rate_range> slowest;
  for (const auto& [worker, rate] : heard_)
    if (rate.counts && (!slowest || rate.counts->least < slowest->least)) slowest = rate.counts;
  return slowest;
}

double replanner::saved_ms(const std::vector<bool>& by, double mbit_s) {
  rates_.link_mbit_s = mbit_s * per_mbit_s_;
  const auto stay = forecast(loads_, rates_, factors_);
  const auto saved = stay.routes_ms - forecast(loads_, rates_, by).routes_ms;
  return saved < worth_it * stay.whole_ms ? 0 : saved;
}

void replanner::note(worker_id from, double mbit_s, bool probed) {
  auto& of_node = heard_[from];
  auto& last = probed ? of_node.probed : of_node.read;
  std::rotate(last.begin(), last.begin() + 1, last.end());
  last.back() = mbit_s;
  const auto sure = confirmed(last);
  if (!sure) return;
  if (!probed && of_node.reads_as == 0) {
    const auto reads = chosen_at_mbit_s_ / std::midpoint(sure->first, sure->second);
    of_node.reads_as = reads < same_line && reads > 1 / same_line ? reads : 1;
  }
  const auto factor = probed ? 1 : of_node.reads_as;
  of_node.counts = {sure->first * factor, sure->second * factor};
}

std::optional<replanner::proposal> replanner::hear(worker_id from, double mbit_s, bool probed,
                                                   std::uint64_t clocks_left, time_point now) {
  note(from, mbit_s, probed);
  if (changing_ || (not_before_ && now < *not_before_)) return std::nullopt;
  const auto rate = rate_now();
  if (!rate) return std::nullopt;
  const auto middle = std::midpoint(rate->least, rate->greatest);
  rates_.link_mbit_s = middle * per_mbit_s_;
  std::vector<bool> better(loads_.size());
  for (const auto& d : decide_routes(loads_, rates_))
    better[d.layer] = d.chosen == route::factor_broadcast;
  if (better == factors_) return std::nullopt;
  // Whichever of the reports is right, the change has to be worth it: so routes do not follow what is mere noise.
  const auto saved = std::min(saved_ms(better, rate->least), saved_ms(better, rate->greatest));
  if (saved <= 0 || saved * static_cast<double>(clocks_left) <
                        least_return * static_cast<double>(paused_.count()))
    return std::nullopt;
  changing_ = true;
  proposed_ = better;
  proposed_at_mbit_s_ = middle;
  rates_.link_mbit_s = middle * per_mbit_s_;
  return proposal{better,
                  describe(middle, better, saved / forecast(loads_, rates_, factors_).whole_ms)};
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
  paused_ = paused;
  not_before_ = now + std::max<std::chrono::milliseconds>(least_wait, waits_per_pause * paused) *
                          (1 << std::min(changes_++, most_doublings));
  heard_.clear();
}

}  // namespace poseidon
