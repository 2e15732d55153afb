#include "apps/library/line_log.hpp"

#include "apps/library/options.hpp"
#include "apps/library/words.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace poseidon::library {

void line_log::trained(const iteration& i, const std::vector<output_value>&) {
  char text[128];
  std::snprintf(text, sizeof text, "clock %llu: loss %.6g, %llu samples",
                static_cast<unsigned long long>(i.clock), i.loss,
                static_cast<unsigned long long>(i.images));
  std::string line = text;
  if (i.communication_ns > 0) {
    // A program also waits for others that compute longer.
    const auto hidden = std::max(
        0.0, 1 - static_cast<double>(i.exposed_ns) / static_cast<double>(i.communication_ns));
    std::snprintf(text, sizeof text, ", %.0f %% of communication hidden", 100 * hidden);
    line += text;
  }
  add(line);
}

std::optional<std::string> line_log::take() {
  const std::lock_guard lock(mutex_);
  if (lines_.empty()) return std::nullopt;
  auto line = std::move(lines_.front());
  lines_.pop_front();
  return line;
}

void line_log::add(const std::string& text) {
  auto line = in_program_words(text, option_names());
  const std::lock_guard lock(mutex_);
  if (lines_.size() == most) lines_.pop_front();
  lines_.push_back(std::move(line));
}

}  // namespace poseidon::library
