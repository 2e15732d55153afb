// messages/wire/digest.hpp - a digest of memory, by which two workers find out that they have the same bytes.
#pragma once
#include "messages/declared.hpp"

#include <cstddef>
#include <span>

namespace poseidon {

/// 128 bits of `bytes`, and of their number: GHASH under a key that all builds have. Bytes that differ by chance have the same digest with a
/// probability of their number in 2^128; it is for what workers have loaded, not for somebody who wants to deceive, who could as well send other
/// parameters.
/// Cost     one pass, about as fast as memory (docs/decisions/046); no allocation that grows; any thread.
/// Errors   std::runtime_error: OpenSSL has no GMAC.
/// Source   NIST SP 800-38D, where the bytes are what is only authenticated.
[[nodiscard]] frames::byte_digest digest_of(std::span<const std::byte> bytes);

}  // namespace poseidon
