#include "models/no_memory.hpp"

#include <algorithm>
#include <cstdio>

namespace poseidon {

namespace {

thread_local const memory_for* innermost = nullptr;

/// At most so much of a text of any length fits.
int shown(std::string_view text) {
  return static_cast<int>(std::min<std::size_t>(text.size(), 80));
}

}  // namespace

memory_for::memory_for(std::string_view what, std::string_view name) noexcept
    : what_(what), name_(name), outer_(innermost) {
  innermost = this;
}

memory_for::~memory_for() {
  innermost = outer_;
}

no_memory::no_memory(std::size_t bytes) noexcept {
  char whose[200] = "";
  if (const auto* use = innermost) {
    const char* quote = use->name_.empty() ? "" : " \"";
    std::snprintf(whose, sizeof whose, " for %.*s%s%.*s%s", shown(use->what_), use->what_.data(),
                  quote, shown(use->name_), use->name_.data(), use->name_.empty() ? "" : "\"");
  }
  char amount[64] = "a library does not say how much it wanted";
  if (bytes >= 1'000'000)
    std::snprintf(amount, sizeof amount, "%.1f MB were wanted", static_cast<double>(bytes) / 1e6);
  else if (bytes > 0)
    std::snprintf(amount, sizeof amount, "%zu bytes were wanted", bytes);
  std::snprintf(text_, sizeof text_,
                "not enough memory%s: %s. The machine has none left, or a limit is reached (ulimit "
                "-v, a container's)",
                whose, amount);
}

}  // namespace poseidon
