#include "models/device/value_checksum.hpp"

#include <bit>
#include <cstring>

namespace poseidon {
namespace {

/// The shift brings what differs in the highest bits down, from where the product carries it up again.
template <class Word>
[[gnu::always_inline]] inline void follow(Word& sum, const Word& bits) {
  sum = (sum + bits) * 0x9e3779b1u;
  sum ^= sum >> 15;
}

/// `blocks` times as many values as there are sums.
template <std::size_t lanes>
[[gnu::always_inline]] inline void add_blocks(std::array<std::uint32_t, lanes>& sums,
                                              const float* values, std::size_t blocks) {
  using eight [[gnu::vector_size(32)]] = std::uint32_t;
  eight sum[lanes / 8];
  static_assert(sizeof sum == sizeof sums);
  std::memcpy(sum, sums.data(), sizeof sum);
  for (std::size_t b = 0; b < blocks; ++b)
    for (auto& of : sum) {
      eight bits;
      std::memcpy(&bits, values, sizeof bits);
      follow(of, bits);
      values += sizeof bits / sizeof *values;
    }
  std::memcpy(sums.data(), sum, sizeof sum);
}

#if defined(__x86_64__)
template <std::size_t lanes>
[[gnu::target("avx2")]] void add_blocks_avx2(std::array<std::uint32_t, lanes>& sums,
                                             const float* values, std::size_t blocks) {
  add_blocks(sums, values, blocks);
}
#endif

}  // namespace

void value_checksum::add_one(float value) {
  follow(sums_[count_++ % lanes], std::bit_cast<std::uint32_t>(value));
}

void value_checksum::add(std::span<const float> values) {
  for (; !values.empty() && count_ % lanes != 0; values = values.subspan(1)) add_one(values[0]);
  const auto blocks = values.size() / lanes;
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (has_avx2)
    add_blocks_avx2(sums_, values.data(), blocks);
  else
#endif
    add_blocks(sums_, values.data(), blocks);
  count_ += blocks * lanes;
  for (const auto v : values.subspan(blocks * lanes)) add_one(v);
}

std::uint32_t value_checksum::value() const {
  auto sum = static_cast<std::uint32_t>(count_);
  for (const auto of_lane : sums_) follow(sum, of_lane);
  return sum;
}

}  // namespace poseidon
