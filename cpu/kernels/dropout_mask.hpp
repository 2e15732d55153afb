// cpu/kernels/dropout_mask.hpp - dropout's random choices, eight Philox counters at a time.
#pragma once
#include <cstddef>
#include <cstdint>

namespace poseidon::cpu {

/// The factors of one sample: 0 with probability `ratio`, else 1 / (1 - ratio).
///
/// Writes   factors[0, size): value i follows word i % 4 of random_words(seed, dropout, layer,
/// sample, i / 4)
///          and nothing else; the value is kept if unit_float(word) >= ratio.
/// Source   models/random.hpp, whose scalar words tests/cpu/dropout_test.cpp compares with.
void dropout_factors(std::uint64_t seed, std::uint32_t layer, std::uint64_t sample, float ratio,
                     std::size_t size, float* factors);

}  // namespace poseidon::cpu
