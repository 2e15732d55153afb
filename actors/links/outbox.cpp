#include "actors/links/outbox.hpp"

#include "messages/wire/checksum.hpp"

#include <utility>

namespace poseidon {

outbox::outbox(const std::optional<link_keys>& keys) {
  if (keys) seal_.emplace(keys->out);
}

void outbox::add(frame_queue::piece p, const frame_writer& from) {
  auto& s = slots_[pieces_];
  const auto sum = crc32c(p.bytes);
  s.header.clear();
  if (p.first)
    encode_header(p.of->frame.header, {from, p.of->frame.data.bytes.size(), sum}, s.header);
  s.preamble = encode_preamble(
      {static_cast<std::uint32_t>(s.header.size() / 8), p.first ? crc32c(s.header) : sum});
  put(s.preamble);
  put(s.header);
  put(p.bytes);
  payload_bytes_ += p.bytes.size();
  s.bytes = s.preamble.size() + s.header.size() + p.bytes.size();
  if (seal_) {
    const std::array<std::span<const std::byte>, 3> parts{s.preamble, s.header, p.bytes};
    s.tag = seal_->next(parts);
    put(s.tag);
    s.bytes += s.tag.size();
  }
  s.piece = std::move(p);
  ++pieces_;
}

void outbox::put(std::span<const std::byte> b) {
  if (b.empty()) return;
  parts_[used_parts_++] = {const_cast<std::byte*>(b.data()), b.size()};
  bytes_ += b.size();
}

void outbox::begin_write(std::int64_t now_ns) {
  unwritten_ = std::span(parts_).first(used_parts_);
  begin_ns_ = now_ns;
}

std::size_t outbox::unwritten_bytes() const {
  std::size_t n = 0;
  for (const auto& part : unwritten_) n += part.iov_len;
  return n;
}

void outbox::clear() {
  for (std::size_t i = 0; i < pieces_; ++i) slots_[i].piece = {};
  pieces_ = used_parts_ = bytes_ = payload_bytes_ = 0;
  unwritten_ = {};
}

}  // namespace poseidon
