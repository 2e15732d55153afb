#include "data/epoch_order.hpp"

#include "models/random.hpp"

#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

namespace poseidon {

permutation shuffled(std::uint64_t n, const shuffle_key& key, std::uint64_t epoch) {
  // Fisher and Yates, with 64 bits per step, so that no place is more likely than another.
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  const auto stream = key.seed ^ (std::uint64_t{key.part} << 32);
  for (std::uint64_t i = n; i > 1; --i) {
    const auto words = random_words(stream, random_use::shuffle, key.layer, epoch,
                                    static_cast<std::uint32_t>(i - 1));
    const auto word = std::uint64_t{words[1]} << 32 | words[0];
    const auto other = static_cast<std::uint64_t>((static_cast<unsigned __int128>(word) * i) >> 64);
    std::swap(order[i - 1], order[other]);
  }
  return std::make_shared<const std::vector<std::uint32_t>>(std::move(order));
}

epoch_order::epoch_order(std::uint64_t n, bool shuffles, const shuffle_key& key)
    : n_(n), shuffles_(shuffles), key_(key) {
  if (shuffles && n > std::numeric_limits<std::uint32_t>::max())
    throw std::invalid_argument(std::to_string(n) + " are too many to shuffle; 2^32 - 1 are not.");
}

std::uint64_t epoch_order::at(std::uint64_t sample) const {
  const auto epoch = sample / n_, place = sample % n_;
  if (!shuffles_) return place;
  const std::scoped_lock lock(mutex_);
  if (known_[0].order == nullptr || known_[0].epoch != epoch) std::swap(known_[0], known_[1]);
  if (known_[0].order == nullptr || known_[0].epoch != epoch)
    known_[0] = {epoch, shuffled(n_, key_, epoch)};
  return (*known_[0].order)[place];
}

}  // namespace poseidon
