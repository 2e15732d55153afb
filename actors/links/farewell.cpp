#include "actors/links/farewell.hpp"

#include "messages/wire/checksum.hpp"
#include "messages/wire/codec.hpp"

#include <vector>

namespace poseidon {

void say_farewell(tcp_socket& s, worker_id self, const std::string& reason) noexcept {
  try {
    std::vector<std::byte> header;
    encode_header(frames::goodbye{reason}, {self, 0, crc32c({})}, header);
    auto start = encode_preamble({static_cast<std::uint32_t>(header.size() / 8), crc32c(header)});
    iovec parts[] = {{start.data(), start.size()}, {header.data(), header.size()}};
    (void)s.write_some(parts);  // it fits the buffer of a fresh connection
    s.shutdown_writing();
  } catch (const std::exception&) {
    // The peer is gone, and needs no reason.
  }
}

}  // namespace poseidon
