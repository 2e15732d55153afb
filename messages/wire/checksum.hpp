// messages/wire/checksum.hpp - the checksum of a piece on the wire.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace poseidon {

/// CRC-32C (Castagnoli) of `bytes`, continued from `before`, the value of the bytes that precede them; 0 to
/// begin.
///
/// TCP's own 16-bit sum misses about one damaged segment in 65536, and does not cover memory on the way. A plain
/// vectorised sum would be faster, but misses moved words, and those are what broken software makes of a buffer.
/// Cost     one pass; no allocation; any thread. With SSE4.2 several times a link's rate (docs/measurements/links.md).
/// Source   RFC 3720 B.4 has the test values (tests/messages/checksum_test.cpp).
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

/// The same value without special instructions: for processors without SSE4.2, and to test crc32c() against.
[[nodiscard]] std::uint32_t crc32c_portable(std::span<const std::byte> bytes,
                                            std::uint32_t before = 0);

}  // namespace poseidon
