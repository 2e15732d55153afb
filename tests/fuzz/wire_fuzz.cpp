// What a peer sends: a preamble and a header, as link_receiver decodes them. What is accepted must
// be written again as something that is accepted.
#include "messages/wire/codec.hpp"
#include "tests/fuzz/target.hpp"

#include <cstring>

using namespace poseidon;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size < preamble_bytes) return 0;
  return fuzz::accept_or_refuse([&] {
    const auto* from = reinterpret_cast<const std::byte*>(bytes);
    (void)decode_preamble(std::span<const std::byte, preamble_bytes>(from, preamble_bytes));
    // Cap'n Proto reads words: the receiver's buffer is aligned, and so is this one.
    std::vector<std::byte> header(from + preamble_bytes, from + size);
    const auto decoded = decode_header(header);
    std::vector<std::byte> again;
    encode_header(decoded.header, decoded, again);
    try {
      (void)decode_header(again);
    } catch (const bad_frame& e) {
      throw std::logic_error(std::string("our own frame is refused: ") + e.what());
    }
  });
}
