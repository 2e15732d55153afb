#include "actors/links/refusal_summary.hpp"

#include <algorithm>
#include <utility>

namespace poseidon {

std::optional<std::string> refusal_summary::add(const std::string& host, std::string text,
                                                time_point now) {
  if (count_ == 0 && (!told_ || now - *told_ >= quiet)) {
    told_ = now;
    return text;
  }
  ++count_;
  if (untold_.size() < most_hosts || untold_.contains(host)) ++untold_[host];
  last_ = std::move(text);
  return std::nullopt;
}

std::string refusal_summary::summary(time_point::duration since) const {
  const auto most = std::max_element(untold_.begin(), untold_.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since).count();
  return std::to_string(count_) + " more connections in " + std::to_string(seconds) + " s, " +
         std::to_string(most->second) + " of them from " + most->first + "; the last one: " + last_;
}

std::optional<std::string> refusal_summary::due(time_point now) {
  if (count_ == 0 || now - *told_ < quiet) return std::nullopt;
  auto line = count_ == 1 ? last_ : summary(now - *told_);
  told_ = now;
  count_ = 0;
  untold_.clear();
  return line;
}

}  // namespace poseidon
