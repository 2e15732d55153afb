// tests/actors/links/puppet_link.hpp - a link, and a peer that the test plays byte by byte.
#pragma once
#include "messages/wire/checksum.hpp"
#include "tests/actors/links/link_rig.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

namespace poseidon::test {

struct link_and_puppet {
  system_rig rig;
  std::shared_ptr<tcp_socket> puppet;
  link_end end;
  explicit link_and_puppet(const end_options& o = {}) {
    std::shared_ptr<tcp_socket> ours;
    std::tie(puppet, ours) = socket_pair();
    end = make_end(rig, std::move(ours), o);
  }
  link_lost lost() {
    const auto l = end.lost->wait_for(1);
    REQUIRE(l.size() == 1);
    return l.front();
  }
};

/// A frame's first piece with `payload`, of `announced` bytes in all.
inline std::vector<std::byte> piece_with_header(const frame_header& h,
                                                std::span<const std::byte> payload,
                                                std::size_t announced,
                                                frame_writer from = {seat_id{1}}) {
  std::vector<std::byte> header;
  encode_header(h, {from, announced, crc32c(payload)}, header);
  const auto p = encode_preamble({static_cast<std::uint32_t>(header.size() / 8), crc32c(header)});
  std::vector<std::byte> out(p.size() + header.size() + payload.size());
  auto* to = std::copy(p.begin(), p.end(), out.data());
  std::copy(payload.begin(), payload.end(), std::copy(header.begin(), header.end(), to));
  return out;
}

}  // namespace poseidon::test
