// Long because every kind of frame is written and read once.
#include "messages/wire/codec.hpp"

#include <capnp/any.h>
#include <capnp/message.h>
#include <capnp/serialize.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>

namespace poseidon {
namespace {

std::vector<std::byte> encoded(const frame_header& h, std::size_t payload = 0,
                               frame_writer from = {seat_id{3}, 1ull << 40}) {
  std::vector<std::byte> out;
  encode_header(h, {from, payload, 0xc0ffee}, out);
  return out;
}

template <class Frame>
Frame there_and_back(const Frame& f, std::size_t payload = 0) {
  const auto d = decode_header(encoded(f, payload));
  CHECK(d.from.seat == seat_id{3});
  CHECK(d.from.epoch == 1ull << 40);
  CHECK(d.payload_bytes == payload);
  CHECK(d.payload_checksum == 0xc0ffee);
  REQUIRE(std::holds_alternative<Frame>(d.header));
  return std::get<Frame>(d.header);
}

std::vector<frame_header> one_of_each() {
  frames::view v;
  v.epoch = 7;
  v.you = seat_id{4};
  v.members = {{seat_id{0}, "10.0.0.7:7600"}, {seat_id{4}, "[fe80::1]:7601"}, {seat_id{9}, ""}};
  v.before = {{seat_id{0}, seat_id{2}}, {1, 0, 1}};
  v.solver = std::string("\0\1binary", 8) + std::string(100'000, 'n');
  v.seed = 1ull << 63;
  v.first_clock = clock_id{10'000'000'000};
  v.first_sample = 1ull << 50;
  v.test_phases = 20;
  v.routes = {0, 1, 1};
  v.wire = {2, 0, 1, 4, 3};
  v.watched = true;
  v.routes_follow_links = true;
  v.replicas = 3;
  v.survive = 2;
  v.zeroes_lost_state = true;
  v.state_zeroed_at = 17;
  v.parameters = {{"conv1.weight", {64, 3, 7, 7}}, {"scale", {}}};
  for (int i = 0; i < 1000; ++i) v.parameters.push_back({"layer" + std::to_string(i), {i + 1, 2}});
  v.parameters.push_back({"mean", {3}, true, {1ull << 63, 7}});
  v.parameters.push_back({"small ones", {300}, false, {}, true});
  v.shared = {{"mean", "buffer torch.float32 [3]", 1ull << 40, {5, 1ull << 63}}, {"", "", 0, {}}};
  v.reasons = {"", "as --routes sfb says"};
  v.shares = {{3, 1}, {1ull << 30, 2}, {1, 1}};
  return {
      frames::heartbeat{},
      v,
      frames::member_ready{2, 1, {true, false, true, false, false, false, false, false}, {}},
      frames::start_training{},
      frames::push_gradient{chunk_id{12}, clock_id{1ull << 40}, true},
      frames::fresh_parameters{chunk_id{0xffffffff}, version_id{9}, true},
      frames::install_history{chunk_id{1}, 2, 1ull << 33},
      frames::gather_history{version_id{77}},
      frames::history{chunk_id{1}, 2, version_id{3}},
      frames::worker_report{clock_id{5}, -1, 4, {0.5, -1e300, 0.0}, 123456789012},
      frames::stop_requested{"Ctrl-C on node 2"},
      frames::snapshot_requested{},
      frames::stop_after{version_id{41}, "reason"},
      frames::goodbye{""},
      frames::worker_done{version_id{40}},
      frames::gradient_squares{clock_id{1ull << 40}},
      frames::factors{layer_id{9}, clock_id{1ull << 40}, 256, 1ull << 33},
      frames::probe{3, true},
      frames::probe_heard{3},
      frames::watch{-1, 200},
      frames::report{},
      frames::hold_training{},
      frames::worker_paused{clock_id{1ull << 40}, true},
      frames::drain{clock_id{1ull << 40}},
      frames::next_view{8,
                        clock_id{1ull << 40},
                        {{seat_id{4}, "[fe80::1]:7601"}, {seat_id{9}, "c:1"}},
                        {0, 1, 0},
                        {0, 4'000'000'000},
                        {{3, 1}, {8, 2}},
                        "as a file asks",
                        {seat_id{2}, seat_id{7}},
                        true,
                        {{seat_id{5}, "d:7600"}},
                        {seat_id{9}}},
      frames::join_ready{4},
      frames::leave_wanted{"SIGTERM"},
      frames::send_rate{934.5},
      frames::time_net{std::string(100'000, 'n'), 1ull << 63, true},
      frames::net_timed{2, 1234.5},
      frames::worker_left{seat_id{2}, version_id{7}},
      frames::factor_offer{{0, 32, 1u << 31}},
      frames::suspect{seat_id{7}, "its connection is reset"},
      frames::view_prepare{7, {3, seat_id{2}}},
      frames::view_promise{7,
                           {3, seat_id{2}},
                           {4, seat_id{9}},
                           {2, seat_id{1}},
                           {8, clock_id{5}, {{seat_id{4}, "a:1"}}, {1}, {}, {}, "why", {}},
                           true,
                           version_id{5},
                           true,
                           {seat_id{2}, seat_id{4}},
                           {seat_id{9}}},
      frames::view_accept{7, {3, seat_id{2}}, {8, clock_id{5}, {{seat_id{4}, "a:1"}}, {1}}},
      frames::view_accepted{7, {3, seat_id{2}}, {4, seat_id{9}}},
      frames::summed_gradient{chunk_id{7}, clock_id{1ull << 41}, 0.5f, -0.25f, 1e-20f, 0xdeadbeef},
      frames::shared_state{9, 1ull << 33},
      frames::gathering{2, 3},
      frames::lowrank_factor{layer_id{9}, clock_id{1ull << 40}, true}};
}

template <class F>
bad_frame refused(F&& read) {
  try {
    read();
  } catch (const bad_frame& e) {
    return e;
  }
  FAIL("was read without complaint");
  return bad_frame("", "", "", "");
}

TEST_CASE("codec: every kind of frame comes back as it was sent") {
  const auto all = one_of_each();
  REQUIRE(all.size() == std::variant_size_v<frame_header>);
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(all[i].index() == i);
    CAPTURE(kind_name(all[i]));
    const std::size_t payload = has_payload(all[i]) ? 4096 : 0;
    const auto once = encoded(all[i], payload);
    const auto d = decode_header(once);
    CHECK(d.header.index() == i);
    CHECK(encoded(d.header, payload) == once);  // no field lost
  }
  const auto sent = std::get<frames::view>(all[1]);
  const auto v = there_and_back(sent);
  CHECK(v.epoch == sent.epoch);
  CHECK(v.you == sent.you);
  CHECK(v.members == sent.members);
  CHECK(v.before.seats == sent.before.seats);
  CHECK(v.before.routes == sent.before.routes);
  CHECK(!v.prospect);
  CHECK(v.solver == sent.solver);
  CHECK(v.seed == sent.seed);
  CHECK(v.first_clock == sent.first_clock);
  CHECK(v.first_sample == sent.first_sample);
  CHECK(v.test_phases == sent.test_phases);
  CHECK(v.routes == sent.routes);
  CHECK(v.wire == sent.wire);
  CHECK(v.watched);
  CHECK(v.routes_follow_links);
  CHECK(v.replicas == 3);
  CHECK(v.survive == 2);
  CHECK(v.zeroes_lost_state);
  CHECK(v.state_zeroed_at == 17);
  CHECK(v.reasons == sent.reasons);
  CHECK(v.parameters == sent.parameters);
  CHECK(v.shared == sent.shared);
  REQUIRE(v.shares.size() == 3);
  CHECK(v.shares[1].samples == 1ull << 30);
  CHECK(v.shares[1].replicas == 2);
  CHECK(there_and_back(frames::member_ready{2, 9}).replicas == 2);
  CHECK(there_and_back(frames::member_ready{2, 9}).epoch == 9);
  CHECK(there_and_back(frames::suspect{seat_id{7}, "reset"}).seat == seat_id{7});
  CHECK(there_and_back(frames::suspect{seat_id{7}, "reset"}).why == "reset");
  const auto said = std::get<frames::view_promise>(all[34]);
  const auto promise = there_and_back(said);
  CHECK(promise.epoch == 7);
  CHECK(promise.number == said.number);
  CHECK(promise.promised == said.promised);
  CHECK(promise.accepted == said.accepted);
  CHECK(promise.value.first_clock == clock_id{5});
  CHECK(promise.value.members == said.value.members);
  CHECK(promise.whole);
  CHECK(promise.version == version_id{5});
  CHECK(promise.drained);
  CHECK(promise.hears == said.hears);
  CHECK(promise.dead == said.dead);
  CHECK(there_and_back(std::get<frames::view_prepare>(all[33])).number.round == 3);
  CHECK(there_and_back(std::get<frames::view_accept>(all[35])).value.epoch == 8);
  CHECK(there_and_back(std::get<frames::view_accepted>(all[36])).promised.seat == seat_id{9});
  CHECK(there_and_back(frames::net_timed{2, 1234.5}).samples_s == 1234.5);
  CHECK(there_and_back(frames::time_net{"solver", 3, true}).measure);
  const auto r = there_and_back(std::get<frames::worker_report>(all[9]));
  CHECK(r.sums == std::vector<double>{0.5, -1e300, 0.0});
  CHECK(r.test_net == -1);
  CHECK(r.images == 123456789012);
  const auto i = there_and_back(frames::install_history{chunk_id{1}, 2, 1ull << 33}, 8);
  CHECK(i.first == 1ull << 33);
  const auto sum = there_and_back(frames::summed_gradient{chunk_id{7}, clock_id{8}, 1, 2, 3, 4}, 8);
  CHECK(sum.chunk == chunk_id{7});
  CHECK(sum.clock == clock_id{8});
  CHECK(sum.rate == 1);
  CHECK(sum.decay == 2);
  CHECK(sum.scale == 3);
  CHECK(sum.checksum == 4);
  const auto ready = there_and_back(frames::member_ready{2, 9, {}, std::vector<bool>(9, true)});
  CHECK(ready.has_parameters.empty());
  CHECK(ready.has_shared.size() == 16);
  CHECK(std::count(ready.has_shared.begin(), ready.has_shared.end(), true) == 9);
  CHECK(!ready.has_shared[9]);
  CHECK(there_and_back(frames::shared_state{9, 1ull << 33}, 8).index == 9);
  CHECK(there_and_back(frames::shared_state{9, 1ull << 33}, 8).first == 1ull << 33);
  const auto s = there_and_back(frames::worker_paused{clock_id{41}, true});
  CHECK(s.clock == clock_id{41});
  CHECK(s.drained);
  const auto sent_next = std::get<frames::next_view>(all[24]);
  const auto next = there_and_back(sent_next);
  CHECK(next.epoch == 8);
  CHECK(next.first_clock == clock_id{1ull << 40});
  CHECK(next.lost == sent_next.lost);
  CHECK(next.lacking == sent_next.lacking);
  CHECK(next.all_have_values);
  CHECK(next.members == sent_next.members);
  CHECK(next.witnesses == sent_next.witnesses);
  CHECK(next.routes == std::vector<std::uint8_t>{0, 1, 0});
  CHECK(next.factor_rows == std::vector<std::uint32_t>{0, 4'000'000'000});
  REQUIRE(next.shares.size() == 2);
  CHECK(next.shares[1].samples == 8);
  CHECK(next.shares[1].replicas == 2);
  CHECK(next.why == "as a file asks");
  CHECK(there_and_back(frames::drain{clock_id{41}}).clock == clock_id{41});
  CHECK(there_and_back(frames::join_ready{4}).replicas == 4);
  CHECK(there_and_back(frames::leave_wanted{"SIGTERM"}).why == "SIGTERM");
  CHECK(there_and_back(frames::gathering{2, 3}).there == 2);
  CHECK(there_and_back(frames::gathering{2, 3}).wanted == 3);
  CHECK(there_and_back(frames::worker_left{seat_id{2}, version_id{7}}).left == seat_id{2});
  CHECK(there_and_back(frames::factor_offer{{0, 32}}).rows == std::vector<std::uint32_t>{0, 32});
  CHECK(there_and_back(frames::send_rate{934.5}).mbit_s == 934.5);
  CHECK_FALSE(there_and_back(frames::send_rate{934.5}).probed);
  CHECK(there_and_back(frames::send_rate{934.5, true}).probed);
  const auto h = there_and_back(frames::history{chunk_id{1}, 2, version_id{3}}, 8);
  CHECK(h.chunk == chunk_id{1});
  CHECK(h.slot == 2);
  CHECK(h.version == version_id{3});
  CHECK(there_and_back(frames::push_gradient{chunk_id{12}, clock_id{5}}, 4).clock == clock_id{5});
  const step_mark half{0, 0, wire_format::float16}, brain{0.5, 7, wire_format::bfloat16};
  CHECK(there_and_back(frames::push_gradient{{}, {}, false, half}, 4).step == half);
  CHECK(there_and_back(frames::factors{{}, {}, 1, 0, brain}, 4).step == brain);
  const frames::fresh_parameters mean{chunk_id{3}, version_id{4}, false, wire_format::bfloat16};
  CHECK(there_and_back(mean, 4).format == wire_format::bfloat16);
}

TEST_CASE("codec: payload bytes are not part of the header, whose size does not depend on them") {
  const auto h = frames::push_gradient{chunk_id{1}, clock_id{2}};
  CHECK(encoded(h, 4).size() == encoded(h, max_payload_bytes).size());
  CHECK(encoded(h, 4).size() <= 80);
}

TEST_CASE(
    "codec: a preamble comes back; another first byte or a giant header is refused with both "
    "values") {
  const auto bytes = encode_preamble({12, 0xdeadbeef});
  CHECK(decode_preamble(bytes).header_words == 12);
  CHECK(decode_preamble(bytes).checksum == 0xdeadbeef);
  auto http = bytes;
  http[0] = std::byte{'G'};
  CHECK(std::string(refused([&] { (void)decode_preamble(http); }).what()) ==
        "frame: first byte is 71, expected 181");
  const auto giant = encode_preamble({0xffffff, 0});
  CHECK(std::string(refused([&] { (void)decode_preamble(giant); }).what()) ==
        "frame: header size is 134217720, expected at most 25165824");
}

TEST_CASE("codec: a kind that this build does not know is named") {
  auto bytes = encoded(frames::heartbeat{});
  // Cap'n Proto keeps the union's discriminant in the struct's data words; find it by what it
  // decodes to.
  bool seen = false;
  for (std::size_t at = 8; at + 2 <= bytes.size() && !seen; at += 2) {
    auto changed = bytes;
    changed[at] = std::byte{99};
    try {
      (void)decode_header(changed);
    } catch (const bad_frame& e) {
      seen = std::string(e.what()) == "frame: kind is 99, expected at most " +
                                          std::to_string(std::variant_size_v<frame_header> - 1) +
                                          " (the peer may be a newer build)";
    }
  }
  CHECK(seen);
}

TEST_CASE("codec: sizes beyond the limits are refused before anything is copied") {
  SUBCASE("a payload where none belongs") {
    CHECK(std::string(refused([] {
                        (void)decode_header(encoded(frames::heartbeat{}, 8));
                      }).what()) == "heartbeat: payload size is 8, expected at most 0");
  }
  SUBCASE("a payload of gigabytes") {
    const auto b = encoded(frames::push_gradient{}, 0xfffffff0);
    const auto e = refused([&] { (void)decode_header(b); });
    CHECK(e.field == "payload size");
    CHECK(e.got == "4294967280");
  }
  SUBCASE("a view for no member") {
    frames::view v;
    v.members = {{seat_id{0}, "a:1"}, {seat_id{3}, "b:2"}};
    v.you = seat_id{2};
    CHECK(std::string(refused([&] { (void)decode_header(encoded(v)); }).what()) ==
          "view: you is 2, expected the seat of a member");
  }
  SUBCASE("too many members") {
    frames::view v;
    for (std::uint32_t seat = 0; seat <= max_members; ++seat)
      v.members.push_back({seat_id{seat}, ""});
    CHECK(refused([&] { (void)decode_header(encoded(v)); }).field == "number of members");
  }
  SUBCASE("a wire format that cannot be") {
    frames::view v;
    v.members = {{seat_id{0}, "a:1"}};
    v.wire = {0, 5};
    CHECK(std::string(refused([&] { (void)decode_header(encoded(v)); }).what()) ==
          "view: wire format is 5, expected at most 4");
  }
  SUBCASE("routes and rates that cannot be") {
    frames::next_view next;
    next.members = {{seat_id{0}, "a:1"}};
    next.routes = {0, 6};
    CHECK(std::string(refused([&] { (void)decode_header(encoded(next)); }).what()) ==
          "next_view: route is 6, expected at most 5");
    CHECK(refused([] { (void)decode_header(encoded(frames::send_rate{-1})); }).field == "Mbit/s");
    CHECK(refused([] { (void)decode_header(encoded(frames::send_rate{0.0 / 0.0})); }).field ==
          "Mbit/s");
  }
  SUBCASE("too many values in a report") {
    frames::worker_report r;
    r.sums.assign(max_report_values + 1, 0.0);
    CHECK(refused([&] { (void)decode_header(encoded(r)); }).got == "4097");
  }
  SUBCASE("a test net that cannot be") {
    frames::worker_report r;
    r.test_net = -2;
    CHECK(refused([&] { (void)decode_header(encoded(r)); }).field == "test net");
  }
  SUBCASE("a header that is no whole number of words") {
    auto b = encoded(frames::heartbeat{});
    b.pop_back();
    CHECK(refused([&] { (void)decode_header(b); }).field == "header size");
    CHECK(refused([&] { (void)decode_header({}); }).field == "header size");
  }
}

TEST_CASE(
    "codec: our own view that no peer would read is refused here, our own long reason is cut") {
  frames::view v;
  v.members = {{seat_id{0}, "a:1"}};
  v.solver = std::string(max_view_bytes, 'n');
  CHECK_THROWS_AS(encoded(v), std::length_error);
  const auto d = decode_header(encoded(frames::goodbye{std::string(100'000, 'r')}));
  CHECK(std::get<frames::goodbye>(d.header).reason.size() == max_text_bytes);
}

// Whatever arrives: a frame or a bad_frame, nothing else.
void must_not_crash(std::span<const std::byte> bytes, std::size_t& read, std::size_t& bad) {
  try {
    (void)decode_header(bytes);
    ++read;
  } catch (const bad_frame& e) {
    CHECK(!e.field.empty());
    ++bad;
  }
}

TEST_CASE("codec: random bytes, flipped bits and truncations end as bad_frame and never crash") {
  std::mt19937_64 rng(20261121);
  std::size_t read = 0;
  std::size_t bad = 0;
  std::vector<std::byte> junk;
  for (int i = 0; i < 20'000; ++i) {
    junk.resize(8 * (rng() % 40));
    for (auto& b : junk) b = static_cast<std::byte>(rng());
    if (i % 2 == 0 && junk.size() >= 16) {  // half of them with a plausible segment table
      const std::uint32_t table[2] = {0, static_cast<std::uint32_t>(junk.size() / 8 - 1)};
      std::memcpy(junk.data(), table, sizeof table);
      for (std::size_t at = 8; at < junk.size(); ++at)
        if (rng() % 2 != 0) junk[at] = std::byte{0};
    }
    must_not_crash(junk, read, bad);
  }
  auto headers = one_of_each();
  std::get<frames::view>(headers[1]).solver.resize(200);
  for (const auto& h : headers) {
    const auto right = encoded(h, has_payload(h) ? 4 : 0);
    // Each place of most headers; of a long one, which takes long to read, a similar number of places.
    const std::size_t stride = (right.size() / 1024) | 1;
    for (std::size_t n = 0; n < right.size(); n += stride)
      must_not_crash(std::span(right).first(n), read, bad);
    auto flipped = right;
    for (std::size_t bit = 0; bit < right.size() * 8; bit += stride) {
      flipped[bit / 8] ^= std::byte{1} << (bit % 8);
      must_not_crash(flipped, read, bad);
      flipped[bit / 8] = right[bit / 8];
    }
    for (int i = 0; i < 2'000; ++i) {
      auto damaged = right;
      for (auto n = 1 + rng() % 6; n > 0; --n) damaged[rng() % damaged.size()] = std::byte(rng());
      must_not_crash(damaged, read, bad);
    }
  }
  CHECK(bad > 10'000);
  CHECK(read > 100);  // flips in plain numbers are readable: the checksum is there for them
}

TEST_CASE("codec: a list that claims millions of empty elements costs no more than it weighs") {
  // A list of empty structs claims any length for nothing, and Cap'n Proto lets a reader see it as
  // a list of pointers. Put one in the place of each list of a view, which is Frame's first pointer.
  frames::view one;
  one.members = {{seat_id{0}, "a:1"}};
  one.you = seat_id{0};
  const auto right = encoded(one);
  std::vector<capnp::word> aligned(right.size() / sizeof(capnp::word));
  std::memcpy(aligned.data(), right.data(), right.size());
  capnp::FlatArrayMessageReader reader(kj::arrayPtr(aligned.data(), aligned.size()));
  std::size_t read = 0, bad = 0, pointers = 1;
  for (unsigned at = 0; at < pointers; ++at) {
    capnp::MallocMessageBuilder m;
    m.setRoot(reader.getRoot<capnp::AnyPointer>());
    auto orphan = m.getOrphanage().newOrphan<capnp::List<capnp::Void>>(500'000'000);
    auto view = m.getRoot<capnp::AnyStruct>().getPointerSection()[0].getAs<capnp::AnyStruct>();
    pointers = view.getPointerSection().size();
    view.getPointerSection()[at].adopt(std::move(orphan));
    const auto words = capnp::messageToFlatArray(m);
    const auto b = words.asBytes();
    must_not_crash({reinterpret_cast<const std::byte*>(b.begin()), b.size()}, read, bad);
  }
  CHECK(read <= 4);  // fields that are read no more
  CHECK(bad >= 8);
}

}  // namespace
}  // namespace poseidon
