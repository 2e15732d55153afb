#include "actors/links/refusal_summary.hpp"

#include <algorithm>
#include <utility>

namespace poseidon {

std::optional<std::string> refusal_summary::add(const std::string& host, std::string text,
                                                time_point now) {
  if (!told_ || now - *told_ >= quiet) {
    if (count_ == 0) {
      told_ = now;
      return text;
    }
  }
  ++count_;
  if (untold_.size() < most_hosts || untold_.contains(host)) ++untold_[host];
  last_ = std::move(text);
  return std::nullopt;
}

std::optional<std::string> refusal_summary::due(time_point now) {
  if (count_ == 0 || now - *told_ < quiet) return std::nullopt;
  if (count_ == 1) {
    told_ = now;
    count_ = 0;
    untold_.clear();
    return std::exchange(last_, {});
  }
  const auto most = std::max_element(untold_.begin(), untold_.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - *told_).count();
  auto line = std::to_string(count_) + " more connections in " + std::to_string(seconds) + " s, " +
              std::to_string(most->second) + " of them from " + most->first +
              "; the last one: " + last_;
  told_ = now;
  count_ = 0;
  untold_.clear();
  return line;
}

}  // namespace poseidon
