#include "actors/training/output_reports.hpp"

#include <numeric>

namespace poseidon {

double weighted_loss(const std::vector<double>& values, const std::vector<output_value>& outputs) {
  double loss = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) loss += outputs[i].loss_weight * values.at(i);
  return loss;
}

std::optional<std::vector<double>> output_sums::add(std::uint64_t clock, std::size_t first,
                                                    const std::vector<float>& more, double weight) {
  auto& e = clocks_[clock];
  e.sums.resize(values_);
  for (std::size_t i = 0; i < more.size(); ++i) e.sums.at(first + i) += weight * more[i];
  e.seen += more.size();
  if (e.seen < values_ * passes_) return std::nullopt;
  auto sums = std::move(e.sums);
  clocks_.erase(clock);
  return sums;
}

double smoothed_loss::add(double loss) {
  last_.push_back(loss);
  if (last_.size() > window_) last_.pop_front();
  return std::accumulate(last_.begin(), last_.end(), 0.0) / static_cast<double>(last_.size());
}

std::optional<report_board::merged> report_board::add(worker_id from,
                                                      const frames::worker_report& r) {
  auto& net = nets_[r.test_net];
  const auto clock = value(r.clock);
  if (net.complete && clock <= *net.complete) return std::nullopt;
  auto& reports = net.open[clock];
  reports[value(from)] = r;
  if (reports.size() < workers_) return std::nullopt;
  merged all;
  for (const auto& [worker, report] : reports) {
    all.means.resize(std::max(all.means.size(), report.sums.size()));
    for (std::size_t i = 0; i < report.sums.size(); ++i) all.means[i] += report.sums[i];
    all.passes += report.passes;
    all.images += report.images;
    all.communication_ns += report.communication_ns;
    all.exposed_ns += report.exposed_ns;
  }
  for (auto& m : all.means) m /= static_cast<double>(all.passes);
  net.complete = clock;
  net.open.erase(net.open.begin(), net.open.upper_bound(clock));
  return all;
}

std::size_t report_board::incomplete() const {
  std::size_t clocks = 0;
  for (const auto& [test_net, net] : nets_) clocks += net.open.size();
  return clocks;
}

}  // namespace poseidon
