// messages/checksum.hpp - the checksum of a piece on the wire.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace poseidon {

/// CRC-32C (Castagnoli) of `bytes`, going on from `before`, the value of what precedes them; 0 to
/// begin.
///
/// TCP's own 16-bit sum misses about one damaged segment in 65536, and says nothing about memory on
/// the way. Measured (tools/bench/link, and a loop over 256 KiB, which is what a piece holds and
/// what fits in a core's cache): one crc32 instruction at a time does 10 GB/s, three interleaved 30
/// GB/s, a vectorised sum 115 GB/s. Three interleaved cost a tenth of what a socket costs per byte;
/// the plain sum would save most of that but misses swapped and shifted words, which is what broken
/// software does to a buffer. Cost     one pass; no allocation; any thread. Without SSE4.2 the same
/// value at about 0.4 GB/s. Source   RFC 3720 B.4 has the test values
/// (tests/messages/checksum_test.cpp).
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

/// The same without special instructions: for processors that have none, and to test the other
/// against.
[[nodiscard]] std::uint32_t crc32c_portable(std::span<const std::byte> bytes,
                                            std::uint32_t before = 0);

}  // namespace poseidon
