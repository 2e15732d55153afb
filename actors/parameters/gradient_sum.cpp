#include "actors/parameters/gradient_sum.hpp"

#include <algorithm>

namespace poseidon {

gradient_sum::gradient_sum(std::shared_ptr<const host_arithmetic> arithmetic,
                           std::vector<std::vector<std::span<float>>> parts,
                           std::uint32_t micro_batches, std::size_t writers,
                           std::uint64_t staleness)
    : arithmetic_(std::move(arithmetic)),
      parts_(std::move(parts)),
      contributions_(parts_.size() * writers),
      sums_(micro_batches > 1 || staleness > 0 ? staleness + 1 : 0) {
  for (auto& sum : sums_)
    for (const auto& part : parts_.front()) sum.emplace_back(part.size());
}

bool gradient_sum::contribute(std::uint64_t clock, std::uint32_t micro_batch) {
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < contributions_) return false;
  arrived_.store(0, std::memory_order_relaxed);
  auto& first = parts_.front();
  for (std::size_t r = 1; r < parts_.size(); ++r)
    for (std::size_t i = 0; i < first.size(); ++i)
      if (!parts_[r][i].empty()) arithmetic_->add(first[i], parts_[r][i]);
  if (sums_.empty()) return true;
  auto& sum = sums_[clock % sums_.size()];
  for (std::size_t i = 0; i < sum.size(); ++i) {
    if (micro_batch == 0)
      std::copy(first[i].begin(), first[i].end(), sum[i].begin());
    else
      arithmetic_->add(sum[i], first[i]);
  }
  return true;
}

std::span<const float> gradient_sum::total(std::uint64_t clock, std::size_t i) const {
  return sums_.empty() ? parts_.front()[i] : std::span<const float>(sums_[clock % sums_.size()][i]);
}

}  // namespace poseidon
