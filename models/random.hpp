// models/random.hpp
//
// Random numbers that depend on their purpose and their place alone: Philox4x32-10, a counter-based generator
// without state. A value is therefore the same on every node, device and thread and for every split of the
// batch, which makes N nodes equal to one.
// Source   Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once
#include <array>
#include <cstdint>

namespace poseidon {

/// The ten rounds. `counter` says which number, `key` which stream.
[[nodiscard]] constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                                            std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const auto p0 = std::uint64_t{0xD2511F53} * counter[0];
    const auto p1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {
        static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(p1),
        static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}
// The reference implementation's known answer for an all-zero counter and key.
static_assert(philox({0, 0, 0, 0}, {0, 0})[0] == 0x6627e8d5);

/// The purpose of a stream of numbers; part of the key, so that no two uses share numbers.
enum class random_use : std::uint32_t {
  filler = 1,
  dropout = 2,
  augment = 3,
  shuffle = 4,
  pooling = 5,
  lowrank = 6
};

/// Four numbers for (seed, use, who, sample, index): `who` is the layer or parameter, `sample` the global
/// sample index (or the epoch, for shuffles), `index` the group of four values within that sample.
/// Dropout masks: value i of sample n in layer l is word i % 4 of random_words(seed, dropout, l, n, i / 4).
[[nodiscard]] constexpr std::array<std::uint32_t, 4> random_words(std::uint64_t seed,
                                                                  random_use use, std::uint32_t who,
                                                                  std::uint64_t sample,
                                                                  std::uint32_t index) {
  return philox(
      {index, static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(sample >> 32), who},
      {static_cast<std::uint32_t>(seed) ^ (static_cast<std::uint32_t>(use) * 0x9E3779B9u),
       static_cast<std::uint32_t>(seed >> 32)});
}

/// [0, 1) from 24 bits, exactly representable.
[[nodiscard]] constexpr float unit_float(std::uint32_t word) {
  return static_cast<float>(word >> 8) * (1.0f / 16777216.0f);
}

}  // namespace poseidon
