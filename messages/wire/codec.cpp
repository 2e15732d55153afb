#include "messages/wire/codec.hpp"

#include "messages/frame_table.hpp"
#include "messages/wire/at_most.hpp"

#include <capnp/common.h>

namespace poseidon {
namespace {

constexpr std::byte magic{0xb5};

}  // namespace

bad_frame::bad_frame(std::string_view kind_, std::string_view field_, std::string_view got_,
                     std::string_view wanted_)
    : std::runtime_error(std::string(kind_) + ": " + std::string(field_) + " is " +
                         std::string(got_) + ", expected " + std::string(wanted_)),
      kind(kind_),
      field(field_),
      got(got_),
      wanted(wanted_) {}

std::string_view kind_name(const frame_header& h) {
  return row_of_kind(h).name;
}

bool has_payload(const frame_header& h) {
  return row_of_kind(h).payload;
}

bool carries_nets(const frame_header& h) {
  return row_of_kind(h).nets;
}

std::array<std::byte, preamble_bytes> encode_preamble(const preamble& p) {
  std::array<std::byte, preamble_bytes> out{magic};
  for (std::size_t i = 0; i < 3; ++i)
    out[1 + i] = static_cast<std::byte>(p.header_words >> (8 * i));
  for (std::size_t i = 0; i < 4; ++i) out[4 + i] = static_cast<std::byte>(p.checksum >> (8 * i));
  return out;
}

preamble decode_preamble(std::span<const std::byte, preamble_bytes> bytes) {
  preamble p;
  if (bytes[0] != magic) {
    throw bad_frame("frame", "first byte", std::to_string(std::to_integer<unsigned>(bytes[0])),
                    std::to_string(std::to_integer<unsigned>(magic)));
  }
  for (std::size_t i = 0; i < 3; ++i)
    p.header_words |= std::to_integer<std::uint32_t>(bytes[1 + i]) << (8 * i);
  for (std::size_t i = 0; i < 4; ++i)
    p.checksum |= std::to_integer<std::uint32_t>(bytes[4 + i]) << (8 * i);
  at_most("frame", "header size", p.header_words * sizeof(capnp::word), max_view_bytes);
  return p;
}

}  // namespace poseidon
