#include "tests/actors/fakes.hpp"
#include "tests/actors/links/puppet_link.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace poseidon {
namespace {

using namespace std::chrono_literals;
using test::end_options;
using test::link_and_puppet;
using test::make_end;
using test::piece_with_header;

struct two_links {
  test::system_rig rig;
  test::link_end a, b;
  explicit two_links(end_options oa = {}, end_options ob = {}) {
    auto [sa, sb] = test::socket_pair();
    ob.self = seat_id{1};
    ob.peer = seat_id{0};
    a = make_end(rig, std::move(sa), oa);
    b = make_end(rig, std::move(sb), ob);
  }
};

bool about_a_chunk(const link_event& e) {  // no heartbeat
  return e.chunk.has_value();
}

TEST_CASE(
    "network_link: gradients, parameters, history and control each reach their port with their "
    "bytes") {
  two_links t;
  t.a.send(frames::push_gradient{chunk_id{2}, clock_id{5}}, 1000, 2.5f, 3);
  t.a.send(frames::fresh_parameters{chunk_id{1}, version_id{6}}, 1000, -1.0f, 2);
  t.a.send(frames::install_history{chunk_id{3}, 1}, 1000, 0.25f, 2);
  t.a.send(frames::history{chunk_id{0}, 2, version_id{9}}, 1000, 0.5f, 2);
  t.a.tell(send_frame{frames::stop_requested{"enough"}, {}, 0});

  const auto g = t.b.gradients->wait_for(1);
  REQUIRE(g.size() == 1);
  CHECK(g[0].from == worker_id{0});
  CHECK(g[0].chunk == chunk_id{2});
  CHECK(g[0].clock == clock_id{5});
  REQUIRE(g[0].values.bytes.size() == 4000);
  CHECK(reinterpret_cast<std::uintptr_t>(g[0].values.bytes.data()) % 64 == 0);
  const std::vector<float> expected(1000, 2.5f);
  CHECK(std::memcmp(g[0].values.bytes.data(), expected.data(), 4000) == 0);

  REQUIRE(t.b.landed->wait_for(1).size() == 1);
  CHECK(t.b.landed->wait_for(1)[0].version == version_id{6});
  CHECK(t.b.parameters->at(1) == std::vector<float>(1000, -1.0f));
  CHECK(t.b.parameters->at(0) == std::vector<float>(1000, 0.0f));
  REQUIRE(t.b.installed->wait_for(1).size() == 1);
  CHECK(t.b.installed->wait_for(1)[0].slot == 1);
  REQUIRE(t.b.gathered->wait_for(1).size() == 1);
  CHECK(t.b.gathered->wait_for(1)[0].version == version_id{9});
  const auto c = t.b.control->wait_for(1);
  REQUIRE(c.size() == 1);
  CHECK(std::get<frames::stop_requested>(c[0].header).reason == "enough");
  CHECK(t.b.counters->bytes_in > 16'000);
}

TEST_CASE("network_link: chunks of every size around a piece arrive as sent") {
  for (const std::size_t values :
       {std::size_t{1}, piece_bytes / 4 - 1, piece_bytes / 4, piece_bytes / 4 + 1, piece_bytes / 2,
        (std::size_t{2} << 20) / 4}) {
    CAPTURE(values);
    end_options o;
    o.values = values;
    two_links t(o, o);
    auto v = std::make_shared<std::vector<float>>(values);
    for (std::size_t i = 0; i < values; ++i) (*v)[i] = static_cast<float>(i) * 0.5f;
    t.a.tell(send_frame{
        frames::push_gradient{chunk_id{0}, clock_id{1}}, {v, std::as_bytes(std::span(*v))}, 1});
    t.a.tell(send_frame{frames::fresh_parameters{chunk_id{1}, version_id{1}},
                        {v, std::as_bytes(std::span(*v))},
                        1});
    const auto g = t.b.gradients->wait_for(1);
    REQUIRE(g.size() == 1);
    REQUIRE(g[0].values.bytes.size() == 4 * values);
    CHECK(std::memcmp(g[0].values.bytes.data(), v->data(), 4 * values) == 0);
    REQUIRE(t.b.landed->wait_for(1).size() == 1);
    CHECK(t.b.parameters->at(1) == *v);
  }
}

// Reads pieces as the other end of a link would, until a frame of `kind` is complete; says after
// how many bytes on the wire that frame began.
std::size_t bytes_before(tcp_socket& s, std::string_view kind) {
  const auto far = std::chrono::steady_clock::now() + test::patience;
  std::vector<std::byte> scratch;
  std::size_t at = 0;
  const auto read = [&](std::size_t n) {
    scratch.resize(n);
    REQUIRE(s.read_exactly(scratch, far) == n);
    at += n;
  };
  std::vector<std::size_t> left;  // payload bytes of the frames begun
  for (;;) {
    const auto begin = at;
    read(preamble_bytes);
    const auto p =
        decode_preamble(std::span<const std::byte, preamble_bytes>(scratch.data(), preamble_bytes));
    if (p.header_words > 0) {
      read(p.header_words * std::size_t{8});
      const auto h = decode_header(scratch);
      if (kind_name(h.header) == kind) return begin;
      left.push_back(h.payload_bytes);
    }
    if (left.empty()) continue;  // a heartbeat
    const auto piece = std::min(piece_bytes, left.back());
    read(piece);
    left.back() -= piece;
    if (left.back() == 0) left.pop_back();
  }
}

TEST_CASE(
    "network_link: an urgent frame waits for one write of 256 KiB, however much was told before "
    "it") {
  end_options o;
  o.values = (2 << 20) / 4;
  o.chunks = 16;
  link_and_puppet t(o);
  // Far more than the kernel takes while the peer reads nothing.
  for (unsigned i = 0; i < o.chunks; ++i)
    t.end.send(frames::push_gradient{chunk_id{i}, clock_id{0}}, o.values, 1.0f, 9);
  while (t.end.counters->bytes_out == 0) std::this_thread::yield();
  t.end.tell(send_frame{frames::stop_requested{"now"}, {}, 0});
  const std::size_t written = t.end.counters->bytes_out;
  CHECK(written < o.chunks * 4 * o.values);
  CHECK(bytes_before(*t.puppet, "stop_requested") <= written + piece_bytes + 256);
}

TEST_CASE(
    "network_link: on a slow link more urgent frames go first and equal ones keep their order") {
  end_options o;
  o.values = 10'000;
  o.chunks = 8;
  o.rate_mbit_s = 4;  // 80 ms per chunk: all are waiting before the second can go
  two_links t(o, o);
  for (const unsigned chunk : {7u, 6u, 5u, 4u})
    t.a.send(frames::push_gradient{chunk_id{chunk}, clock_id{0}}, o.values, 1.0f, 5);
  for (const unsigned chunk : {3u, 1u, 2u, 0u})
    t.a.send(frames::push_gradient{chunk_id{chunk}, clock_id{0}}, o.values, 1.0f, 4);
  const auto g = t.b.gradients->wait_for(8);
  REQUIRE(g.size() == 8);
  std::vector<unsigned> four, five;
  for (const auto& m : g) (value(m.chunk) < 4 ? four : five).push_back(value(m.chunk));
  CHECK(four == std::vector<unsigned>{3, 1, 2, 0});
  CHECK(five == std::vector<unsigned>{7, 6, 5, 4});
  CHECK(value(g.back().chunk) == 4);  // the last of the less urgent ones is the last of all
  // 40 kB at 4 Mbit/s take 80 ms; a busy machine can only make it longer.
  std::vector<std::int64_t> starts;
  for (const auto& e : t.a.events->wait_for(8, about_a_chunk)) starts.push_back(e.start_ns);
  REQUIRE(starts.size() == 8);
  CHECK(starts.back() - starts.front() > 450'000'000);
}

TEST_CASE("network_link: within a budget chunks take their time, and control frames none") {
  end_options o;
  o.values = 10'000;
  o.chunks = 6;
  o.budget_mbit_s = 4;  // 80 ms per chunk
  two_links t(o, o);
  for (unsigned chunk = 0; chunk < o.chunks; ++chunk)
    t.a.send(frames::push_gradient{chunk_id{chunk}, clock_id{0}}, o.values, 1.0f, 5);
  t.a.tell(send_frame{frames::stop_requested{"now"}, {}, 0});
  REQUIRE(t.b.gradients->wait_for(o.chunks).size() == o.chunks);
  std::vector<std::int64_t> starts;
  for (const auto& e : t.a.events->wait_for(o.chunks, about_a_chunk)) starts.push_back(e.start_ns);
  // Five chunks after the first, less what may be spent at once; a busy machine can only make it longer.
  CHECK(starts.back() - starts.front() > 350'000'000);
  const auto stop = t.a.events->wait_for(
      1, [](const link_event& e) { return e.sent && e.kind == "stop_requested"; });
  REQUIRE(stop.size() == 1);
  CHECK(stop[0].end_ns < starts.back());
}

TEST_CASE("network_link: a link that closes does not wait for its budget") {
  end_options o;
  o.values = 10'000;
  o.budget_mbit_s = 0.001;  // a chunk in five minutes
  two_links t(o, o);
  for (unsigned chunk = 0; chunk < o.chunks; ++chunk)
    t.a.send(frames::push_gradient{chunk_id{chunk}, clock_id{0}}, o.values, 1.0f, 5);
  t.a.tell(close_link{"all clocks done"});
  CHECK(t.b.gradients->wait_for(o.chunks).size() == o.chunks);
  CHECK(t.b.lost->wait_for(1).size() == 1);
}

TEST_CASE(
    "network_link: 64 MiB each way at once, told before anyone reads a mailbox, do not block each "
    "other") {
  end_options o;
  o.values = (2 << 20) / 4;
  o.chunks = 32;
  two_links t(o, o);
  for (unsigned i = 0; i < o.chunks; ++i) {
    t.a.send(frames::push_gradient{chunk_id{i}, clock_id{0}}, o.values, 1.0f, i);
    t.b.send(frames::push_gradient{chunk_id{i}, clock_id{0}}, o.values, 2.0f, i);
  }
  CHECK(t.a.gradients->wait_for(o.chunks).size() == o.chunks);
  CHECK(t.b.gradients->wait_for(o.chunks).size() == o.chunks);
}

TEST_CASE(
    "network_link: close_link sends what waits first, and both ends say that it was on purpose") {
  end_options o;
  o.values = (2 << 20) / 4;
  o.chunks = 8;
  two_links t(o, o);
  for (unsigned i = 0; i < o.chunks; ++i)
    t.a.send(frames::push_gradient{chunk_id{i}, clock_id{0}}, o.values, 1.0f, i);
  t.a.tell(close_link{"all clocks done"});
  CHECK(t.b.gradients->wait_for(o.chunks).size() == o.chunks);
  const auto there = t.b.lost->wait_for(1);
  REQUIRE(there.size() == 1);
  CHECK(there[0].on_purpose);
  CHECK(there[0].peer == seat_id{0});
  CHECK(there[0].why == "worker 0 (10.0.0.7:7600) said goodbye: all clocks done");
  const auto here = t.a.lost->wait_for(1);
  REQUIRE(here.size() == 1);
  CHECK(here[0].on_purpose);
  CHECK(here[0].why == "closed the link to worker 1 (10.0.0.8:7600): all clocks done");
  CHECK(there[0].reason == "all clocks done");
  CHECK(here[0].reason == "all clocks done");
}

TEST_CASE("network_link: when both ends close at once nothing that waited is lost") {
  end_options o;
  o.values = (2 << 20) / 4;
  o.chunks = 8;
  two_links t(o, o);
  for (unsigned i = 0; i < o.chunks; ++i) {
    t.a.send(frames::push_gradient{chunk_id{i}, clock_id{0}}, o.values, 1.0f, i);
    t.b.send(frames::push_gradient{chunk_id{i}, clock_id{0}}, o.values, 1.0f, i);
  }
  t.a.tell(close_link{""});
  t.b.tell(close_link{""});
  CHECK(t.a.gradients->wait_for(o.chunks).size() == o.chunks);
  CHECK(t.b.gradients->wait_for(o.chunks).size() == o.chunks);
  REQUIRE(t.a.lost->wait_for(1).size() == 1);
  REQUIRE(t.b.lost->wait_for(1).size() == 1);
  CHECK(t.a.lost->wait_for(1)[0].on_purpose);
  CHECK(t.b.lost->wait_for(1)[0].on_purpose);
  CHECK(!t.a.lost->wait_for(1)[0].reason);
}

TEST_CASE("network_link: a peer that has said goodbye still gets all that waited, closed or not") {
  for (const bool closed : {true, false}) {
    CAPTURE(closed);
    end_options o;
    o.values = (2 << 20) / 4;
    o.chunks = 16;
    link_and_puppet t(o);
    for (unsigned i = 0; i < o.chunks; ++i)
      t.end.send(frames::push_gradient{chunk_id{i}, clock_id{0}}, o.values, 1.0f, 1);
    if (closed) t.end.tell(close_link{"done"});
    t.puppet->write(piece_with_header(frames::goodbye{"done too"}, {}, 0));
    t.puppet->shutdown_writing();
    while (t.end.counters->frames_in == 0) std::this_thread::yield();
    CHECK(bytes_before(*t.puppet, "goodbye") > o.chunks * 4 * o.values);
    const auto l = t.lost();
    CHECK(l.on_purpose);
    CHECK(l.why == "worker 1 (10.0.0.8:7600) said goodbye: done too");
  }
}

TEST_CASE("network_link: two idle links keep each other alive") {
  end_options o;
  o.silence_limit = 1500ms;
  o.heartbeat = 100ms;
  two_links t(o, o);
  // Sent and received: at least 16 at 100 ms each way, longer than the limit.
  CHECK(t.a.events->wait_for(40).size() >= 40);
  CHECK(t.b.events->wait_for(40).size() >= 40);
  CHECK(t.a.lost->size() == 0);
  CHECK(t.b.lost->size() == 0);
}

TEST_CASE("network_link: a peer that falls silent is lost by name, with how long it was silent") {
  end_options o;
  o.silence_limit = 300ms;
  link_and_puppet t(o);
  const auto l = t.lost();
  CHECK(!l.on_purpose);
  CHECK(l.peer == seat_id{1});
  CHECK(l.why.starts_with("no word from worker 1 (10.0.0.8:7600) for 0."));
  CHECK(l.why.find("(limit 0.3 s)") != std::string::npos);
}

TEST_CASE("network_link: a peer that may be lost is given up by what its link has shown") {
  using clock = std::chrono::steady_clock;
  end_options o;  // the limit that is not to hold is the test's patience
  o.least_silence_limit = 300ms;
  o.may_be_lost = true;
  link_and_puppet t(o);
  const auto known = clock::now() + 6s;
  for (std::size_t n = 1; clock::now() < known; ++n) {
    t.puppet->write(piece_with_header(frames::heartbeat{}, {}, 0));
    (void)t.end.events->wait_for(2 * n);  // its own heartbeats pace the test
  }
  const auto l = t.lost();
  CHECK(l.why.starts_with("no word from worker 1"));
  CAPTURE(l.why);
  CHECK(l.why.find("(limit 60") == std::string::npos);
}

TEST_CASE(
    "network_link: a writer stuck on a peer that does not read is freed by the peer's silence") {
  end_options o;
  o.silence_limit = 300ms;
  o.values = (2 << 20) / 4;
  o.chunks = 32;
  link_and_puppet t(o);
  for (unsigned i = 0; i < o.chunks; ++i)
    t.end.send(frames::push_gradient{chunk_id{i}, clock_id{0}}, o.values, 1.0f, i);
  CHECK(t.lost().why.starts_with("no word from worker 1"));
}

TEST_CASE(
    "network_link: a peer that can be heard but takes nothing is given up at the stall limit, by "
    "name") {
  end_options o;  // silence is no matter here: its limit is the test's patience
  o.values = (2 << 20) / 4;
  o.chunks = 32;
  // A second passes whenever the link looks: it does so before and after each attempt to write.
  o.now = [at = std::make_shared<std::atomic<int>>(0)] {
    return std::chrono::steady_clock::time_point(std::chrono::seconds(at->fetch_add(1)));
  };
  link_and_puppet t(o);
  for (unsigned i = 0; i < o.chunks; ++i)
    t.end.send(frames::push_gradient{chunk_id{i}, clock_id{0}}, o.values, 1.0f, i);
  SUBCASE("while it is open") {}
  SUBCASE("while it is closing") {
    t.end.tell(close_link{"all clocks done"});
  }
  t.puppet->write(piece_with_header(frames::heartbeat{}, {}, 0));
  const auto l = t.lost();
  CHECK(!l.on_purpose);
  CAPTURE(l.why);
  CHECK(
      l.why.starts_with("the link to worker 1 (10.0.0.8:7600) was broken off: it has taken "
                        "nothing of what waits for it for 1"));
  CHECK(l.why.find(" s (limit 10.0 s), though it can be heard") != std::string::npos);
}

TEST_CASE("network_link: events of a direction follow each other or lie within each other") {
  end_options o;
  o.values = piece_bytes / 4 + 100;  // two pieces: a more urgent frame goes between them
  o.chunks = 8;
  two_links t(o, o);
  constexpr unsigned clocks = 40;
  for (unsigned clock = 0; clock < clocks; ++clock)
    for (unsigned i = 0; i < o.chunks; ++i)
      t.a.send(frames::push_gradient{chunk_id{i}, clock_id{clock}}, o.values, 1.0f, i);
  REQUIRE(t.b.gradients->wait_for(std::size_t{clocks} * o.chunks).size() == clocks * o.chunks);
  for (auto* end : {&t.a, &t.b}) {
    auto events = end->events->wait_for(std::size_t{clocks} * o.chunks, about_a_chunk);
    REQUIRE(events.size() == clocks * o.chunks);
    std::sort(events.begin(), events.end(), [](const link_event& x, const link_event& y) {
      return std::pair(x.start_ns, -x.end_ns) < std::pair(y.start_ns, -y.end_ns);
    });
    std::vector<std::int64_t> open;  // ends
    std::size_t partly = 0;
    for (const auto& e : events) {
      while (!open.empty() && open.back() <= e.start_ns) open.pop_back();
      partly += !open.empty() && open.back() < e.end_ns;
      open.push_back(e.end_ns);
    }
    CHECK(partly == 0);
  }
}

TEST_CASE("network_link: the trace has each frame once at either end, in order and with its size") {
  two_links t;
  for (unsigned i = 0; i < 4; ++i)
    t.a.send(frames::push_gradient{chunk_id{i}, clock_id{i}}, 1000, 1.0f, i);
  REQUIRE(t.b.gradients->wait_for(4).size() == 4);
  for (auto* end : {&t.a, &t.b}) {
    const auto of_chunks = end->events->wait_for(4, about_a_chunk);
    REQUIRE(of_chunks.size() == 4);
    for (unsigned i = 0; i < 4; ++i) {
      CHECK(of_chunks[i].sent == (end == &t.a));
      CHECK(of_chunks[i].number == i);
      CHECK(of_chunks[i].bytes == 4000);
      CHECK(of_chunks[i].start_ns <= of_chunks[i].end_ns);
    }
  }
}

}  // namespace
}  // namespace poseidon
