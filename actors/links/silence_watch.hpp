// actors/links/silence_watch.hpp - how long a link waits for a word of its peer: a number, or what the link has shown itself.
#pragma once
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace poseidon {

/// The limit is `most` until the link is known. Where the others go on without a peer that is lost, it is good to notice that soon,
/// and a mistake costs no more than the peer's coming back. Then the limit follows the link: six times the longest time between two
/// reads of the last minute, within `least` and `most`. So a machine that is busy, or a line that loses packets, raises it.
class silence_watch {
 public:
  using clock = std::chrono::steady_clock;
  using milliseconds = std::chrono::milliseconds;

  /// `first_word` is the limit before the first byte. `least` of `most` or more: the limit is `most`, always.
  silence_watch(milliseconds first_word, milliseconds least, milliseconds most,
                clock::time_point now)
      : first_word_(first_word), least_(std::min(least, most)), most_(most), heard_(now) {}

  /// Whether the limit may follow the link from now on.
  void follow(bool may) { follows_ = may && least_ < most_; }
  /// Bytes came.
  void heard(clock::time_point now);
  [[nodiscard]] milliseconds limit() const;
  /// When the last bytes came.
  [[nodiscard]] clock::time_point last() const { return heard_; }
  /// It is so long ago that the peer may have given this process up meanwhile, if it was this one that slept.
  [[nodiscard]] bool is_late(clock::time_point now) const {
    return now - heard_ > (follows_ ? least_ * 3 / 4 : most_ / 2);
  }

 private:
  static constexpr std::chrono::seconds step{5};
  static constexpr std::size_t steps = 12;
  static constexpr int gaps = 6;

  milliseconds first_word_, least_, most_;
  bool follows_ = false;
  clock::time_point heard_, step_ends_{};  // {}: nothing has come
  std::uint64_t ended_ = 0;                // steps
  std::array<clock::duration, steps> longest_{};
};

}  // namespace poseidon
