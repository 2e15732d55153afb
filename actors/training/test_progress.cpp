#include "actors/training/test_progress.hpp"

#include <algorithm>

namespace poseidon {

test_progress::test_progress(test_share share, std::size_t values_per_pass)
    : share_(share),
      values_per_pass_(values_per_pass),
      replicas_(share.replicas),
      sums_(values_per_pass) {
  for (std::uint64_t r = 0; r < replicas_.size(); ++r) replicas_[r].wanted = share_.passes(r);
}

void test_progress::start_no_more() {
  for (auto& r : replicas_) r.wanted = r.started;
}

std::optional<std::uint64_t> test_progress::start(std::uint64_t replica) {
  auto& r = replicas_[replica];
  if (r.started == r.wanted || r.issued < r.started || r.started - computed_by(r) >= in_flight)
    return std::nullopt;
  return r.started++;
}

void test_progress::issued(std::uint64_t replica, std::size_t data_layers) {
  auto& r = replicas_[replica];
  if (++r.issued_layers % data_layers == 0) ++r.issued;
}

void test_progress::computed(std::uint64_t replica, std::size_t first,
                             const std::vector<float>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) sums_.at(first + i) += values[i];
  replicas_[replica].values += values.size();
}

bool test_progress::finished() const {
  return std::all_of(replicas_.begin(), replicas_.end(), [this](const progress& r) {
    return r.issued >= r.wanted && r.values >= r.wanted * values_per_pass_;
  });
}

std::uint64_t test_progress::computed() const {
  std::uint64_t all = 0;
  for (const auto& r : replicas_) all += computed_by(r);
  return all;
}

/// A pass of a net without outputs sends no message at its end: it counts as computed when it has been issued.
std::uint64_t test_progress::computed_by(const progress& r) const {
  return values_per_pass_ == 0 ? r.issued : r.values / values_per_pass_;
}

std::uint64_t test_progress::passes() const {
  std::uint64_t all = 0;
  for (std::uint64_t r = 0; r < replicas_.size(); ++r) all += share_.passes(r);
  return all;
}

}  // namespace poseidon
