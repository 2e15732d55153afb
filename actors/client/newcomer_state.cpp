#include "actors/client/newcomer_state.hpp"

#include "actors/parameters/handover.hpp"
#include "messages/wire/codec.hpp"
#include "messages/wire/digest.hpp"

#include <algorithm>
#include <utility>

namespace poseidon {

namespace {

template <class Byte>
std::span<Byte> piece_of(std::span<Byte> bytes, std::uint64_t first) {
  const auto rest = bytes.subspan(std::min<std::uint64_t>(first, bytes.size()));
  return rest.first(std::min(rest.size(), shared_piece_bytes));
}

}  // namespace

void newcomer_state::give(std::uint64_t clock, std::span<const std::byte> bytes,
                          std::uint64_t own) {
  auto copy = std::make_shared<const block>(bytes.begin(), bytes.end());
  const auto digest = digest_of(bytes.subspan(own));
  const std::lock_guard lock(mutex_);
  of_given_ = {bytes.size(), own, digest};
  given_ = std::move(copy);
  given_at_ = clock;
}

bool newcomer_state::has_given(std::uint64_t clock) const {
  const std::lock_guard lock(mutex_);
  return given_ != nullptr && given_at_ == clock;
}

frames::given_state newcomer_state::given(std::uint64_t clock) const {
  const std::lock_guard lock(mutex_);
  return given_ != nullptr && given_at_ == clock ? of_given_ : frames::given_state{};
}

payload newcomer_state::piece(std::uint64_t first) const {
  const std::lock_guard lock(mutex_);
  return {given_, piece_of(std::span(*given_), first)};
}

void newcomer_state::expect(clock_id clock, const frames::given_state& comes) {
  const std::lock_guard lock(mutex_);
  joined_at_ = value(clock);
  came_.resize(comes.bytes);
}

std::optional<std::uint64_t> newcomer_state::joined_at() const {
  const std::lock_guard lock(mutex_);
  return joined_at_;
}

std::span<std::byte> newcomer_state::place(std::uint64_t first) {
  const std::lock_guard lock(mutex_);
  return piece_of(std::span(came_), first);
}

std::span<const std::byte> newcomer_state::came() const {
  const std::lock_guard lock(mutex_);
  return came_;
}

void newcomer_state::forget_given() {
  const std::lock_guard lock(mutex_);
  given_.reset();
}

void newcomer_state::forget_what_came() {
  const std::lock_guard lock(mutex_);
  came_ = {};
}

worker_id giver_of_piece(std::uint64_t first, const frames::given_state& of,
                         std::size_t former_workers, const std::vector<worker_id>& lost) {
  const auto number = first < of.own ? 0 : first / shared_piece_bytes;
  return donor_of(as_id<chunk_id>(number), former_workers, lost);
}

}  // namespace poseidon
