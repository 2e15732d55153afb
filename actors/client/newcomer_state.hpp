// actors/client/newcomer_state.hpp
//
// What is more than parameters, from the programs that train to one that joins them: a block of bytes in the programs' own words. Those that
// train pause before the same clock, and each makes the block; pieces of it travel from all of them. The bytes in front are the oldest
// member's, and of the others all have the same.
#pragma once
#include "messages/frames.hpp"
#include "models/ids.hpp"

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace poseidon {

/// Any thread may call it.
class newcomer_state {
 public:
  // -- of a program that trains

  /// The block of the clock that it pauses before. `own`: so many of the bytes in front may be another worker's otherwise.
  /// Cost   a pass over all bytes.
  void give(std::uint64_t clock, std::span<const std::byte> bytes, std::uint64_t own);
  [[nodiscard]] bool has_given(std::uint64_t clock) const;
  /// What has been given of this clock. No bytes: nothing.
  [[nodiscard]] frames::given_state given(std::uint64_t clock) const;
  /// Bytes `first` and following of what has been given, at most one piece.
  [[nodiscard]] payload piece(std::uint64_t first) const;
  /// It is on its way, or nobody needs it any more.
  void forget_given();

  // -- of a program that joins

  /// It joins with this clock, and is given this.
  void expect(clock_id clock, const frames::given_state& comes);
  /// The clock that it has joined with; empty: it has begun with all others.
  [[nodiscard]] std::optional<std::uint64_t> joined_at() const;
  /// Where the bytes `first` and following are to lie, one piece.
  [[nodiscard]] std::span<std::byte> place(std::uint64_t first);
  /// What has come, when all has.
  [[nodiscard]] std::span<const std::byte> came() const;
  /// The program has taken it.
  void forget_what_came();

 private:
  using block = std::vector<std::byte>;

  mutable std::mutex mutex_;
  std::shared_ptr<const block> given_;
  frames::given_state of_given_;
  std::uint64_t given_at_ = 0;
  block came_;
  std::optional<std::uint64_t> joined_at_;
};

/// Who of the view before gives the piece that begins with this byte. `lost`: none of them.
[[nodiscard]] worker_id giver_of_piece(std::uint64_t first, const frames::given_state& of,
                                       std::size_t former_workers,
                                       const std::vector<worker_id>& lost);

}  // namespace poseidon
