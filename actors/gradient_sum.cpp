#include "actors/gradient_sum.hpp"

#include <algorithm>

namespace poseidon {

gradient_sum::gradient_sum(std::shared_ptr<const device> arithmetic,
                           std::vector<std::vector<std::span<float>>> parts,
                           std::uint32_t micro_batches, std::size_t writers)
    : arithmetic_(std::move(arithmetic)),
      parts_(std::move(parts)),
      contributions_(parts_.size() * writers) {
  if (micro_batches > 1)
    for (const auto& part : parts_.front()) over_micro_batches_.emplace_back(part.size());
}

void gradient_sum::contribute(std::uint32_t index) {
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < contributions_) return;
  arrived_.store(0, std::memory_order_relaxed);
  auto& first = parts_.front();
  for (std::size_t r = 1; r < parts_.size(); ++r)
    for (std::size_t i = 0; i < first.size(); ++i) arithmetic_->add(first[i], parts_[r][i]);
  for (std::size_t i = 0; i < over_micro_batches_.size(); ++i) {
    if (index == 0)
      std::copy(first[i].begin(), first[i].end(), over_micro_batches_[i].begin());
    else
      arithmetic_->add(over_micro_batches_[i], first[i]);
  }
}

std::span<const float> gradient_sum::total(std::size_t i) const {
  if (over_micro_batches_.empty()) return parts_.front()[i];
  return over_micro_batches_[i];
}

}  // namespace poseidon
