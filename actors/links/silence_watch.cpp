#include "actors/links/silence_watch.hpp"

namespace poseidon {

void silence_watch::heard(clock::time_point now) {
  const bool first = step_ends_ == clock::time_point{};
  const auto gap = first ? clock::duration{} : now - heard_;
  heard_ = now;
  if (first) step_ends_ = now + step;
  for (std::size_t i = 0; i < steps && now >= step_ends_; ++i) {
    longest_[++ended_ % steps] = {};
    step_ends_ += step;
  }
  if (now >= step_ends_) step_ends_ = now + step;  // after more than a minute
  auto& longest = longest_[ended_ % steps];
  longest = std::max(longest, gap);
}

std::chrono::milliseconds silence_watch::limit() const {
  if (step_ends_ == clock::time_point{}) return first_word_;
  if (!follows_ || ended_ == 0) return most_;
  const auto longest = *std::max_element(longest_.begin(), longest_.end());
  return std::clamp(std::chrono::ceil<milliseconds>(gaps * longest), least_, most_);
}

}  // namespace poseidon
