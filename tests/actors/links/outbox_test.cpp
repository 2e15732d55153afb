#include "actors/links/outbox.hpp"

#include "messages/wire/checksum.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace poseidon {
namespace {

frame_queue::piece piece_of_chunk(std::shared_ptr<const std::vector<std::byte>> values,
                                  std::size_t first, std::size_t count) {
  frame_queue::piece p;
  p.of = std::make_shared<frame_queue::entry>();
  p.of->frame.header = frames::push_gradient{chunk_id{7}, clock_id{3}};
  p.of->frame.data = {values, *values};
  p.bytes = std::span(*values).subspan(first, count);
  p.first = first == 0;
  p.last = first + count == values->size();
  return p;
}

auto some_values(std::size_t count) {
  auto v = std::make_shared<std::vector<std::byte>>(count);
  for (std::size_t i = 0; i < count; ++i) (*v)[i] = static_cast<std::byte>(i * 7);
  return v;
}

std::vector<std::byte> bytes_of(std::span<const iovec> parts) {
  std::vector<std::byte> out;
  for (const auto& p : parts) {
    const auto* from = static_cast<const std::byte*>(p.iov_base);
    out.insert(out.end(), from, from + p.iov_len);
  }
  return out;
}

TEST_CASE(
    "outbox: a first piece has a header that tells its checksum, a later one its checksum alone") {
  const auto values = some_values(1000);
  outbox box;
  CHECK(box.empty());
  box.add(piece_of_chunk(values, 0, 600), {seat_id{2}, 7});
  box.add(piece_of_chunk(values, 600, 400), {seat_id{2}, 7});
  CHECK(box.unwritten().empty());
  box.begin_write(17);
  CHECK(box.begin_ns() == 17);
  const auto written = bytes_of(box.unwritten());
  CHECK(written.size() == box.bytes());
  CHECK(written.size() == box.unwritten_bytes());
  REQUIRE(box.slots().size() == 2);
  CHECK(box.slots()[0].bytes + box.slots()[1].bytes == box.bytes());

  const std::span all(written);
  const auto first = decode_preamble(all.first<preamble_bytes>());
  const auto header = all.subspan(preamble_bytes, first.header_words * 8);
  CHECK(first.checksum == crc32c(header));
  const auto decoded = decode_header(header);
  CHECK(decoded.from.seat == seat_id{2});
  CHECK(decoded.from.epoch == 7);
  CHECK(decoded.payload_bytes == 1000);
  CHECK(decoded.payload_checksum == crc32c(std::span(*values).first(600)));
  const auto payload = all.subspan(preamble_bytes + header.size(), 600);
  CHECK(std::equal(payload.begin(), payload.end(), values->begin()));

  const auto rest = all.subspan(box.slots()[0].bytes);
  const auto second = decode_preamble(rest.first<preamble_bytes>());
  CHECK(second.header_words == 0);
  CHECK(second.checksum == crc32c(std::span(*values).subspan(600)));
  CHECK(std::equal(values->begin() + 600, values->end(), rest.begin() + preamble_bytes));
}

TEST_CASE("outbox: it is full at a piece's length of payload, or at 16 small pieces") {
  outbox box;
  SUBCASE("payload") {
    const auto values = some_values(piece_bytes / 2);
    box.add(piece_of_chunk(values, 0, values->size()), {seat_id{0}});
    CHECK_FALSE(box.full());
    box.add(piece_of_chunk(values, 0, values->size()), {seat_id{0}});
  }
  SUBCASE("pieces") {
    const auto values = some_values(4);
    for (int i = 0; i < 16; ++i) {
      CHECK_FALSE(box.full());
      box.add(piece_of_chunk(values, 0, 4), {seat_id{0}});
    }
  }
  CHECK(box.full());
  box.clear();
  CHECK(box.empty());
  CHECK_FALSE(box.full());
}

TEST_CASE("outbox: clear lets go of the payloads, and the next write begins from nothing") {
  auto values = some_values(100);
  const std::weak_ptr<const std::vector<std::byte>> kept = values;
  outbox box;
  box.add(piece_of_chunk(std::move(values), 0, 100), {seat_id{0}});
  box.begin_write(1);
  CHECK_FALSE(kept.expired());
  box.clear();
  CHECK(kept.expired());
  CHECK(box.unwritten().empty());
  CHECK(box.bytes() == 0);
}

TEST_CASE(
    "outbox: a frame that is too large to send is named, and what is in the box stays as it is") {
  const auto values = some_values(100);
  outbox box;
  box.add(piece_of_chunk(values, 0, 100), {seat_id{0}});
  const auto bytes = box.bytes();
  frame_queue::piece large;
  large.of = std::make_shared<frame_queue::entry>();
  frames::view view;
  view.solver = std::string(max_view_bytes, 'x');
  large.of->frame.header = std::move(view);
  large.first = large.last = true;
  CHECK_THROWS_AS(box.add(std::move(large), {seat_id{0}}), std::length_error);
  CHECK(box.slots().size() == 1);
  CHECK(box.bytes() == bytes);
}

}  // namespace
}  // namespace poseidon
