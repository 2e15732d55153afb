#include "actors/core/overlap_meter.hpp"

namespace poseidon {

void overlap_meter::begin_anew() {
  const std::lock_guard lock(mutex_);
  under_way_ = 0;
  communication_ns_ = stood_still_ns_ = 0;
}

void overlap_meter::began(std::int64_t now) {
  const std::lock_guard lock(mutex_);
  if (under_way_++ == 0) since_ = now;
}

void overlap_meter::ended(std::int64_t now) {
  const std::lock_guard lock(mutex_);
  if (under_way_ > 0 && --under_way_ == 0) communication_ns_ += now - since_;
}

void overlap_meter::stood_still(std::int64_t ns) {
  const std::lock_guard lock(mutex_);
  stood_still_ns_ += ns;
}

overlap_meter::totals overlap_meter::read(std::int64_t now) const {
  const std::lock_guard lock(mutex_);
  const auto open = under_way_ > 0 ? now - since_ : 0;
  return {static_cast<std::uint64_t>(communication_ns_ + open),
          static_cast<std::uint64_t>(stood_still_ns_) / streams_};
}

}  // namespace poseidon
