// actors/core/span_phase.hpp - the phases of spans from which figures are computed, and their words in traces and reports.
#pragma once
#include <array>
#include <cstddef>
#include <string_view>

namespace poseidon {

enum class span_phase { forward, backward, test, stall, exchange, reconstruct, other };

namespace detail {
inline constexpr std::array<std::string_view, 6> phase_words{"forward", "backward", "test",
                                                             "stall",   "exchange", "reconstruct"};
}  // namespace detail

/// Not for `other`, which stands for every other word.
[[nodiscard]] constexpr std::string_view to_string(span_phase phase) {
  return detail::phase_words.at(static_cast<std::size_t>(phase));
}

[[nodiscard]] constexpr span_phase phase_of(std::string_view word) {
  for (std::size_t i = 0; i < detail::phase_words.size(); ++i)
    if (detail::phase_words[i] == word) return static_cast<span_phase>(i);
  return span_phase::other;
}

static_assert(phase_of(to_string(span_phase::forward)) == span_phase::forward);
static_assert(phase_of(to_string(span_phase::reconstruct)) == span_phase::reconstruct);
static_assert(phase_of("push") == span_phase::other);

}  // namespace poseidon
