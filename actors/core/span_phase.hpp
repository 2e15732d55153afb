// actors/core/span_phase.hpp - what a span of the trace is about. Actors record the enum; its words stand in the trace
// file, on the page and in the reports of nodes.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace poseidon {

enum class span_phase : std::uint8_t {
  forward,
  backward,
  test,
  stall,           ///< a stream waits for parameters
  exchange,        ///< of a layer's gradient, until its parameters are fresh
  reconstruct,     ///< of a gradient from its factors
  read,            ///< of a batch
  copy_to_device,  ///< of parameters
  copy_to_host,    ///< of gradients or outputs
  sum,             ///< the device adds a gradient to another replica's
  gradient_ready,  ///< until a gradient that stays on the device is complete
  push,            ///< of a gradient's chunk, to its shard
  receive,         ///< of that chunk, at its shard
  apply,           ///< of the solver's rule, to a chunk
  send,            ///< of a fresh chunk, by its shard
  pull,            ///< of that chunk, at the other nodes
  broadcast,       ///< of factors
  collect,         ///< of factors, at the other nodes
  other            ///< a word that this program does not know
};

namespace detail {
inline constexpr std::array<std::string_view, 19> phase_words{
    "forward",        "backward",  "test",           "stall",        "exchange",
    "reconstruct",    "read",      "copy to device", "copy to host", "sum",
    "gradient ready", "push",      "receive",        "apply",        "send",
    "pull",           "broadcast", "collect",        "other"};
static_assert(phase_words.size() == static_cast<std::size_t>(span_phase::other) + 1);
}  // namespace detail

/// The text lives as long as the program.
[[nodiscard]] constexpr std::string_view to_string(span_phase phase) {
  return detail::phase_words.at(static_cast<std::size_t>(phase));
}

[[nodiscard]] constexpr span_phase phase_of(std::string_view word) {
  for (std::size_t i = 0; i < detail::phase_words.size(); ++i)
    if (detail::phase_words[i] == word) return static_cast<span_phase>(i);
  return span_phase::other;
}

static_assert(phase_of(to_string(span_phase::forward)) == span_phase::forward);
static_assert(phase_of(to_string(span_phase::gradient_ready)) == span_phase::gradient_ready);
static_assert(phase_of(to_string(span_phase::collect)) == span_phase::collect);
static_assert(phase_of("of a later version") == span_phase::other);

}  // namespace poseidon
