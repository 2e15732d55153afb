#include "actors/client/factor_offers.hpp"

#include <algorithm>
#include <utility>

namespace poseidon {

bool factor_offers::take(worker_id from, std::vector<std::uint32_t> rows) {
  auto& offer = of_worker_.at(from);
  if (!offer) ++heard_;
  rows.resize(parameters_);
  offer = std::move(rows);
  return heard_ == of_worker_.size();
}

std::vector<std::uint32_t> factor_offers::rows() const {
  std::vector<std::uint32_t> out(parameters_);
  for (std::size_t p = 0; p < parameters_; ++p) {
    bool all = true;
    for (const auto& offer : of_worker_) {
      out[p] = std::max(out[p], (*offer)[p]);
      all = all && (*offer)[p] > 0;
    }
    if (!all) out[p] = 0;
  }
  return out;
}

}  // namespace poseidon
