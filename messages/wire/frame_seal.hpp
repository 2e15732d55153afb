// messages/wire/frame_seal.hpp
//
// Proof that what comes on a connection was sent by the peer that shook hands on it, in this order: a tag (AES-128-GMAC) after
// each piece of a frame, over all of the piece. Keys come from the token and the random bytes of both hellos, one for each
// direction; a tag's nonce is the number of the piece. So nobody on the way can add, change, repeat or leave out a piece
// unnoticed. Everybody on the way can read them.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace poseidon {

inline constexpr std::size_t seal_key_bytes = 16, seal_bytes = 16;

using seal_key = std::array<std::byte, seal_key_bytes>;
using seal_tag = std::array<std::byte, seal_bytes>;

/// One connection's, of one side.
struct link_keys {
  seal_key out{}, in{};
};

/// The keys of a connection: HKDF-SHA256 of the token, salted with both hellos, the dialer's first.
/// Errors   std::runtime_error: OpenSSL refuses.
[[nodiscard]] link_keys keys_of_link(const std::string& token,
                                     std::span<const std::byte> dialers_hello,
                                     std::span<const std::byte> acceptors_hello, bool dialer);

/// Tags of one direction, in the order of its pieces. One thread's.
class frame_seal {
 public:
  explicit frame_seal(const seal_key& key);
  ~frame_seal();
  frame_seal(frame_seal&&) noexcept;
  frame_seal& operator=(frame_seal&&) noexcept;

  /// The tag of the next piece, whose parts lie one after the other on the stream.
  [[nodiscard]] seal_tag next(std::span<const std::span<const std::byte>> parts);

 private:
  struct cipher;
  std::unique_ptr<cipher> cipher_;
  std::uint64_t pieces_ = 0;
};

/// Compares in a time that does not depend on where they differ.
[[nodiscard]] bool same_tag(const seal_tag& a, const seal_tag& b);

}  // namespace poseidon
