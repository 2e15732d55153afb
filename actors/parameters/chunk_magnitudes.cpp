#include "actors/parameters/chunk_magnitudes.hpp"

#include "actors/parameters/send_order.hpp"

namespace poseidon {

chunk_magnitudes::chunk_magnitudes(std::shared_ptr<const gradient_sum> sum,
                                   std::shared_ptr<const parameter_store> store,
                                   std::vector<parameter_id> parameters, float scale,
                                   std::uint64_t staleness)
    : sum_(std::move(sum)),
      store_(std::move(store)),
      parameters_(std::move(parameters)),
      scale_(scale) {
  std::vector<std::vector<float>> of_clock;
  for (const auto p : parameters_) of_clock.emplace_back(store_->cut().by_parameter[p].size());
  ring_.assign(staleness + 1, of_clock);
}

void chunk_magnitudes::weigh(std::uint64_t clock) {
  const auto& cut = store_->cut();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    // Not overwritten meanwhile: no version after `clock` can exist before this gradient has been sent.
    const auto values = store_->current(parameters_[i]);
    const auto total = sum_->total(clock, i);
    const auto& chunks = cut.by_parameter[parameters_[i]];
    for (std::size_t j = 0; j < chunks.size(); ++j) {
      const auto& c = cut.chunks[chunks[j]];
      ring_[clock % ring_.size()][i][j] =
          scale_ *
          relative_magnitude(total.subspan(c.offset, c.count), values.subspan(c.offset, c.count));
    }
  }
}

float chunk_magnitudes::of(std::uint64_t clock, std::size_t i, std::size_t j) const {
  return ring_[clock % ring_.size()][i][j];
}

}  // namespace poseidon
