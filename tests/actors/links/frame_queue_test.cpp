#include "actors/links/frame_queue.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace poseidon {
namespace {

send_frame frame(unsigned chunk, std::size_t bytes, std::uint32_t priority) {
  auto data = std::make_shared<std::vector<std::byte>>(bytes);
  return {frames::push_gradient{chunk_id{chunk}, clock_id{0}}, {data, *data}, priority};
}

unsigned chunk_of(const frame_queue::piece& p) {
  return value(std::get<frames::push_gradient>(p.of->frame.header).chunk);
}

// "3 3. 1." : chunk of each piece, a point after the last one of a frame
std::string order(frame_queue& q) {
  std::string s;
  while (const auto p = q.take()) {
    if (!s.empty()) s += ' ';
    s += std::to_string(chunk_of(*p));
    if (p->last) s += '.';
  }
  return s;
}

TEST_CASE("frame_queue: smaller priority first, first come first served among equals") {
  frame_queue q;
  q.push(frame(0, 10, 5));
  q.push(frame(1, 10, 2));
  q.push(frame(2, 10, 5));
  q.push(frame(3, 0, 0));
  q.push(frame(4, 10, 2));
  CHECK(q.frames() == 5);
  CHECK(q.bytes() == 40);
  CHECK(order(q) == "3. 1. 4. 0. 2.");
  CHECK(q.empty());
  CHECK(q.bytes() == 0);
}

TEST_CASE("frame_queue: an urgent frame waits for one piece of a big one, which then goes on") {
  frame_queue q;
  q.push(frame(7, 3 * piece_bytes, 5));
  auto p = q.take();
  REQUIRE(p);
  CHECK(p->first);
  CHECK(!p->last);
  CHECK(p->bytes.size() == piece_bytes);
  q.push(frame(1, 2 * piece_bytes, 3));
  CHECK(chunk_of(*q.take()) == 1);
  q.push(frame(0, 8, 0));
  CHECK(order(q) == "0. 1. 7 7.");
}

TEST_CASE("frame_queue: a frame of equal priority does not interrupt") {
  frame_queue q;
  q.push(frame(0, 2 * piece_bytes, 5));
  (void)q.take();
  q.push(frame(1, 8, 5));
  CHECK(order(q) == "0. 1.");
}

TEST_CASE(
    "frame_queue: no more frames are open than a peer can hold; small ones still get through") {
  frame_queue q;
  for (unsigned i = 0; i < max_open_frames; ++i) {
    q.push(frame(i, 2 * piece_bytes, 100 - i));
    CHECK(chunk_of(*q.take()) == i);
  }
  q.push(frame(50, 2 * piece_bytes, 1));
  CHECK(chunk_of(*q.take()) == max_open_frames - 1);  // must end one before it may begin another
  q.push(frame(51, 8, 0));
  CHECK(chunk_of(*q.take()) == 51);
  CHECK(chunk_of(*q.take()) == 50);
}

TEST_CASE("frame_queue: a frame without a payload is given out alone, one with a payload is not") {
  frame_queue q;
  CHECK_FALSE(q.take_without_payload());
  q.push(frame(0, 2 * piece_bytes, 5));
  CHECK_FALSE(q.take_without_payload());
  q.push(frame(1, 0, 0));
  CHECK(chunk_of(*q.take_without_payload()) == 1);
  CHECK(chunk_of(*q.take()) == 0);
  q.push(frame(2, 0, 0));  // between two pieces
  CHECK(chunk_of(*q.take_without_payload()) == 2);
  CHECK_FALSE(q.take_without_payload());
  CHECK(order(q) == "0.");
}

TEST_CASE(
    "frame_queue: whatever is pushed when, each byte of each frame comes once, in order, in a "
    "stack") {
  std::mt19937 rng(3);
  frame_queue q;
  std::vector<std::size_t> sizes, sent;
  std::vector<unsigned> open;
  const auto look = [&](const frame_queue::piece& p) {
    const auto c = chunk_of(p);
    CHECK(p.first == (sent[c] == 0));
    if (p.first) {
      open.push_back(c);
    }
    CHECK(open.back() == c);  // a continuation always belongs to the frame begun last
    CHECK(open.size() <= max_open_frames + 1);
    CHECK(p.bytes.size() == std::min(piece_bytes, sizes[c] - sent[c]));
    CHECK(p.bytes.data() == p.of->frame.data.bytes.data() + sent[c]);
    sent[c] += p.bytes.size();
    CHECK(p.last == (sent[c] == sizes[c]));
    if (p.last) open.pop_back();
  };
  for (int i = 0; i < 400; ++i) {
    sizes.push_back(1 + rng() % (3 * piece_bytes));
    sent.push_back(0);
    q.push(frame(static_cast<unsigned>(sizes.size() - 1), sizes.back(), rng() % 20));
    for (auto n = rng() % 4; n > 0; --n)
      if (const auto p = q.take()) look(*p);
  }
  while (const auto p = q.take()) look(*p);
  CHECK(sent == sizes);
}

}  // namespace
}  // namespace poseidon
