// messages/wire/checksum.hpp - the checksum of a piece on the wire.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace poseidon {

/// CRC-32C (Castagnoli) of `bytes`, going on from `before`, the value of what precedes them; 0 to
/// begin.
///
/// TCP's own 16-bit sum misses about one damaged segment in 65536, and says nothing about memory on
/// the way. Chosen by measurement (256 KiB, what a piece holds, on one core of an EPYC 9004): the
/// crc32 instruction 10 GB/s, three of them interleaved 30, folding with 512-bit carry-less
/// products 59, a plain vectorised sum 115. A loopback socket takes 0.35 CPU seconds per GB at
/// best; the interleaved form would add a fifth to that at both ends together, folding a tenth. The
/// sum would add a twentieth but misses moved words, and those are what broken software makes of a
/// buffer. Cost     one pass; no allocation; any thread. The best that the processor has; always
/// the same value. Source   RFC 3720 B.4 has the test values (tests/messages/checksum_test.cpp).
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

/// The same without special instructions: for processors that have none, and to test the other
/// against.
[[nodiscard]] std::uint32_t crc32c_portable(std::span<const std::byte> bytes,
                                            std::uint32_t before = 0);
[[nodiscard]] std::uint32_t crc32c_interleaved(std::span<const std::byte> bytes,
                                               std::uint32_t before = 0);

}  // namespace poseidon
