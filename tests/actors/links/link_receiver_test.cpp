// What a link takes from its peer, and what it refuses, byte by byte.
#include "actors/parameters/peer_window.hpp"
#include "tests/actors/fakes.hpp"
#include "tests/actors/links/puppet_link.hpp"

#include <random>

namespace poseidon {
namespace {

using namespace std::chrono_literals;
using test::end_options;
using test::link_and_puppet;
using test::piece_with_header;

TEST_CASE("link_receiver: a peer that closes without a goodbye is lost at once") {
  link_and_puppet t;
  SUBCASE("between two frames") {
    t.puppet->shutdown();
    CHECK(t.lost().why ==
          "worker 1 (10.0.0.8:7600) closed the connection without a goodbye: its process has "
          "ended, or gave the link up; "
          "its own last lines say why");
  }
  SUBCASE("in the middle of a chunk") {
    const std::vector<std::byte> half(1000);
    t.puppet->write(piece_with_header(frames::push_gradient{chunk_id{0}, clock_id{0}}, half, 4000));
    t.puppet->shutdown();
    CHECK(t.lost().why ==
          "worker 1 (10.0.0.8:7600) closed the connection in the middle of a push_gradient: its "
          "process has ended, or gave the link up; its own last lines say why");
  }
  SUBCASE("in the middle of a header") {
    const auto whole = piece_with_header(frames::heartbeat{}, {}, 0);
    t.puppet->write(std::span(whole).first(11));
    t.puppet->shutdown();
    CHECK(t.lost().why.find("in the middle of a frame") != std::string::npos);
  }
  CHECK(t.end.lost->wait_for(1).size() == 1);
  CHECK(t.end.gradients->size() == 0);
}

TEST_CASE(
    "link_receiver: a frame that does not fit the run ends the link with field and both values") {
  link_and_puppet t;
  const std::vector<std::byte> four(4);
  const std::vector<std::byte> chunk(4000);
  std::vector<std::byte> bytes;
  std::string expected;
  const auto say = [&](std::vector<std::byte> b, std::string text) {
    bytes = std::move(b);
    expected = std::move(text);
  };
  SUBCASE("chunk") {
    say(piece_with_header(frames::push_gradient{chunk_id{77}, clock_id{0}}, chunk, 4000),
        "push_gradient: chunk is 77, expected at most 3");
  }
  SUBCASE("size") {
    say(piece_with_header(frames::push_gradient{chunk_id{2}, clock_id{0}}, four, 4),
        "push_gradient: payload size of chunk 2 is 4, expected 4000");
  }
  SUBCASE("no values") {
    say(piece_with_header(frames::fresh_parameters{chunk_id{2}, version_id{0}}, {}, 0),
        "fresh_parameters: payload size of chunk 2 is 0, expected 4000");
  }
  SUBCASE("gigabytes") {
    say(piece_with_header(frames::push_gradient{chunk_id{2}, clock_id{0}}, four, 0xfffffffc),
        "push_gradient: payload size is 4294967292, expected at most 67108864");
  }
  SUBCASE("another node's name") {
    say(piece_with_header(frames::start_training{}, {}, 0, {seat_id{4}}),
        "start_training: from is 4, expected 1");
  }
  SUBCASE("slot") {
    say(piece_with_header(frames::history{chunk_id{0}, 4, version_id{0}}, chunk, 4000),
        "history: slot is 4, expected less than 4");
  }
  SUBCASE("a version that is over") {
    t.end.parameters->due = version_id{5};
    say(piece_with_header(frames::fresh_parameters{chunk_id{0}, version_id{4}}, chunk, 4000),
        "fresh_parameters: version is 4, expected 5");
  }
  SUBCASE("squares where nothing is clipped") {
    say(piece_with_header(frames::gradient_squares{clock_id{0}}, std::vector<std::byte>(4096),
                          4096),
        "gradient_squares: clip_gradients is set, expected unset, as in this run's solver");
  }
  SUBCASE("a continuation of nothing") {
    const auto p = encode_preamble({0, 0});
    say({p.begin(), p.end()},
        "frame: header size is 0, expected a header, as no frame has been begun");
  }
  SUBCASE("garbage") {
    say(std::vector<std::byte>(64, std::byte{'x'}), "frame: first byte is 120, expected 181");
  }
  SUBCASE("a damaged header") {
    auto b = piece_with_header(frames::push_gradient{chunk_id{2}, clock_id{0}}, chunk, 4000);
    b[preamble_bytes + 40] ^= std::byte{1};
    say(std::move(b), "frame: header checksum is ");
  }
  SUBCASE("a damaged payload") {
    auto b = piece_with_header(frames::push_gradient{chunk_id{2}, clock_id{0}}, chunk, 4000);
    b.back() ^= std::byte{1};
    say(std::move(b), "push_gradient: payload checksum is ");
  }
  t.puppet->write(bytes);
  const auto l = t.lost();
  CAPTURE(l.why);
  CHECK(!l.on_purpose);
  CHECK(l.why.find("worker 1 (10.0.0.8:7600) sent a bad frame: " + expected) == 0);
  CHECK(t.end.gradients->size() == 0);
  CHECK(t.end.landed->size() == 0);
  CHECK(t.end.parameters->at(2) == std::vector<float>(1000));
}

TEST_CASE(
    "link_receiver: of a chunk in a reduced format gradients and updates are as short as that, "
    "first "
    "values are not") {
  auto format = wire_format::float16;
  std::string kind;
  SUBCASE("a whole gradient of float16") {
    kind = "push_gradient";
  }
  SUBCASE("a whole update of float16") {
    kind = "fresh_parameters";
  }
  SUBCASE("a whole gradient of int8") {
    format = wire_format::int8;
    kind = "push_gradient";
  }
  SUBCASE("a whole update of int4") {
    format = wire_format::int4;
    kind = "fresh_parameters";
  }
  end_options o;
  o.formats = {wire_format::float32, wire_format::float32, format};
  link_and_puppet t(o);
  t.end.parameters->changes_in = format;
  const std::vector<float> values(1000, 1.5f);
  const auto bytes = static_cast<std::uint32_t>(wire_bytes(format, 1000));
  std::vector<std::byte> half(bytes);
  encode(format, values, half);
  std::vector<float> sum(1000);
  decode(format, half, sum);
  for (auto& v : sum) v += 1.5f;
  const chunk_id chunk{2};
  t.puppet->write(piece_with_header(frames::fresh_parameters{chunk, version_id{0}},
                                    std::as_bytes(std::span(values)), 4000));
  t.puppet->write(piece_with_header(frames::fresh_parameters{chunk, version_id{1}}, half, bytes));
  REQUIRE(t.end.landed->wait_for(2).size() == 2);
  CHECK(t.end.parameters->at(2) == sum);
  t.puppet->write(piece_with_header(frames::push_gradient{chunk, clock_id{0}}, half, bytes));
  const auto gradients = t.end.gradients->wait_for(1);
  REQUIRE(gradients.size() == 1);
  CHECK(std::equal(half.begin(), half.end(), gradients[0].values.bytes.begin(),
                   gradients[0].values.bytes.end()));
  const auto whole = std::as_bytes(std::span(values));
  if (kind == "push_gradient")
    t.puppet->write(piece_with_header(frames::push_gradient{chunk, clock_id{1}}, whole, 4000));
  else
    t.puppet->write(piece_with_header(frames::fresh_parameters{chunk, version_id{2}}, whole, 4000));
  CHECK(t.lost().why.find(kind + ": payload size of chunk 2 is 4000, expected " +
                          std::to_string(bytes)) != std::string::npos);
}

TEST_CASE("link_receiver: a mean in a format that its frame names is written as it is") {
  end_options o;
  o.names_formats = true;
  link_and_puppet t(o);
  const std::vector<float> values(1000, 1.5f);
  std::vector<std::byte> brain(2000);
  encode(wire_format::bfloat16, values, brain);
  for (const std::uint64_t version : {1u, 2u})
    t.puppet->write(piece_with_header(
        frames::fresh_parameters{chunk_id{2}, version_id{version}, false, wire_format::bfloat16},
        brain, 2000));
  REQUIRE(t.end.landed->wait_for(2).size() == 2);
  CHECK(t.end.parameters->at(2) == values);  // not added to what was there
  const step_mark half{0, 0, wire_format::float16};
  t.puppet->write(
      piece_with_header(frames::push_gradient{chunk_id{2}, clock_id{0}, false, half}, brain, 2000));
  const auto gradients = t.end.gradients->wait_for(1);
  REQUIRE(gradients.size() == 1);
  CHECK(gradients[0].step == half);
  CHECK(gradients[0].values.bytes.size() == 2000);
}

TEST_CASE("link_receiver: squares reach the shard whole, others end the link") {
  end_options o;
  o.clips = true;
  link_and_puppet t(o);
  std::vector<std::byte> squares(4096, std::byte{7});
  t.puppet->write(piece_with_header(frames::gradient_squares{clock_id{3}}, squares, 4096));
  const auto got = t.end.squares->wait_for(1);
  REQUIRE(got.size() == 1);
  CHECK(got[0].clock == clock_id{3});
  CHECK(std::equal(got[0].values.bytes.begin(), got[0].values.bytes.end(), squares.begin(),
                   squares.end()));
  squares.resize(4000);
  t.puppet->write(piece_with_header(frames::gradient_squares{clock_id{4}}, squares, 4000));
  CHECK(t.lost().why.find("gradient_squares: payload size is 4000, expected 4096") !=
        std::string::npos);
}

TEST_CASE(
    "link_receiver: a gradient of a wrong clock ends the link by name, and the shard hears "
    "nothing") {
  const auto store = test::one_parameter_store(2000, 1000, 2);
  store->publish(test::only_parameter, 5);
  store->set_applied(chunk_id{0}, 5);
  end_options o;
  o.chunks = 2;
  o.gate = std::make_shared<peer_window>(
      peer_window_setup{worker_id{0}, worker_id{1}, clock_id{5}, {true}, store, {}});
  std::uint64_t clock = 0;
  std::string expected;
  SUBCASE("too old") {
    clock = 4, expected = "4, expected 6";
  }
  SUBCASE("once more") {
    clock = 5, expected = "5, expected 6";
  }
  SUBCASE("too far ahead") {
    clock = 7, expected = "7, expected 6";
  }
  SUBCASE("before its parameters") {
    clock = 6, expected = "6, expected at most 5 so far";
  }
  link_and_puppet t(o);
  const std::vector<std::byte> chunk(4000);
  t.puppet->write(piece_with_header(frames::push_gradient{chunk_id{0}, clock_id{5}}, chunk, 4000));
  t.puppet->write(
      piece_with_header(frames::push_gradient{chunk_id{0}, clock_id{clock}}, chunk, 4000));
  CHECK(
      t.lost().why.find("worker 1 (10.0.0.8:7600) sent a bad frame: push_gradient: clock of chunk "
                        "0 is " +
                        expected) == 0);
  CHECK(t.end.gradients->wait_for(1).size() == 1);
}

TEST_CASE(
    "link_receiver: with eight frames begun, one that a single piece completes still gets "
    "through") {
  end_options o;
  o.values = piece_bytes / 2;  // two pieces
  o.chunks = 16;
  link_and_puppet t(o);
  const std::vector<std::byte> piece(piece_bytes);
  for (unsigned i = 0; i < max_open_frames; ++i)
    t.puppet->write(
        piece_with_header(frames::push_gradient{chunk_id{i}, clock_id{0}}, piece, 2 * piece_bytes));
  t.puppet->write(piece_with_header(frames::stop_requested{"enough"}, {}, 0));
  CHECK(t.end.control->wait_for(1).size() == 1);
}

TEST_CASE("link_receiver: factors are read to their place, and wrong ones end the link by name") {
  end_options o;
  o.factors = {{}, {}, factor_shape{4, 3, 2}};
  link_and_puppet t(o);
  std::vector<std::byte> bytes(4 * 12, std::byte{1});
  const auto send = [&](std::uint32_t layer, std::uint32_t rows, std::uint64_t first) {
    t.puppet->write(piece_with_header(frames::factors{layer_id{layer}, clock_id{9}, rows, first},
                                      bytes, static_cast<std::uint32_t>(bytes.size())));
  };
  send(2, 4, 0);
  const auto got = t.end.factors->wait_for(1);
  REQUIRE(got.size() == 1);
  CHECK(got[0].from == worker_id{1});
  CHECK(got[0].clock == clock_id{9});
  CHECK(got[0].rows == 4);
  const auto& read = t.end.parameters->factors();
  CHECK(std::equal(bytes.begin(), bytes.end(), std::as_bytes(std::span(read)).begin()));
  std::string expected;
  SUBCASE("layer") {
    send(1, 4, 0), expected = "layer is 1, expected one whose route is factor_broadcast";
  }
  SUBCASE("no such layer") {
    send(77, 4, 0), expected = "layer is 77, expected one whose route is factor_broadcast";
  }
  SUBCASE("rows") {
    send(2, 5, 0), expected = "rows of layer 2 is 5, expected 1 to 4";
  }
  SUBCASE("no rows") {
    send(2, 0, 0), expected = "rows of layer 2 is 0, expected 1 to 4";
  }
  SUBCASE("behind the end") {
    send(2, 4, 1ull << 63),
        expected = "first value of layer 2 is 9223372036854775808, expected less than 20";
  }
  SUBCASE("size") {
    send(2, 4, 12), expected = "payload size of layer 2 is 48, expected 32";
  }
  CHECK(t.lost().why.find("worker 1 (10.0.0.8:7600) sent a bad frame: factors: " + expected) == 0);
  CHECK(t.end.factors->wait_for(1).size() == 1);
}

TEST_CASE("link_receiver: a peer that begins frames without ending them is cut off at the ninth") {
  end_options o;
  o.values = piece_bytes / 2;  // two pieces
  o.chunks = 16;
  link_and_puppet t(o);
  const std::vector<std::byte> piece(piece_bytes);
  for (unsigned i = 0; i < 9; ++i)
    t.puppet->write(
        piece_with_header(frames::push_gradient{chunk_id{i}, clock_id{0}}, piece, 2 * piece_bytes));
  CHECK(t.lost().why.find("number of frames begun is 9, expected at most 8") != std::string::npos);
}

TEST_CASE("link_receiver: a flood of gradients that are not used ends the link, not the process") {
  end_options o;
  o.pool_bytes = 64 << 10;
  link_and_puppet t(o);
  const std::vector<std::byte> chunk(4000);
  try {
    for (int i = 0; i < 100; ++i)
      t.puppet->write(
          piece_with_header(frames::push_gradient{chunk_id{0}, clock_id{0}}, chunk, 4000));
  } catch (const socket_error&) {  // it closed while we were writing
  }
  CHECK(t.lost().why.find("bytes wait to be used here, at most 65536 may") != std::string::npos);
}

TEST_CASE("link_receiver: noise after a right beginning never crashes") {
  std::mt19937 rng(7);
  for (int round = 0; round < 50; ++round) {
    link_and_puppet t;
    const auto right = piece_with_header(frames::push_gradient{chunk_id{1}, clock_id{0}},
                                         std::vector<std::byte>(4000), 4000);
    auto noise = right;
    for (int i = 0; i < 1 + round % 5; ++i)
      noise[rng() % (round % 2 == 0 ? 80 : noise.size())] = std::byte(rng());
    t.puppet->write(right);
    t.puppet->write(noise);
    t.puppet->shutdown_writing();
    CHECK(!t.lost().why.empty());
    CHECK(t.end.gradients->wait_for(1).size() >= 1);
  }
}

TEST_CASE(
    "link_receiver: before the view a joiner's link takes control frames and no values; bind_link "
    "changes that") {
  end_options o;
  o.self = o.peer = no_seat;
  o.chunks = 0;
  link_and_puppet t(o);
  t.puppet->write(piece_with_header(frames::start_training{}, {}, 0, {seat_id{0}}));
  REQUIRE(t.end.control->wait_for(1).size() == 1);
  SUBCASE("values come too early") {
    t.puppet->write(piece_with_header(frames::push_gradient{}, std::vector<std::byte>(4000), 4000,
                                      {seat_id{0}}));
    CHECK(t.lost().why.find("chunk is 0, expected none before this node knows the run's chunks") !=
          std::string::npos);
  }
  SUBCASE("bound") {
    auto bound = std::make_shared<link_binding>();
    auto [shard, gradients] = t.rig.listen<gradient_arrived>();
    bound->self = {seat_id{1}, 1};
    bound->peer = seat_id{0};
    bound->worker = worker_id{0};
    bound->limits.chunk_values = {1000};
    bound->routes.shard = shard;
    t.end.tell(bind_link{bound});
    t.end.tell(send_frame{frames::member_ready{}, {}, 0});
    t.end.events->wait_for(2);  // one received, member_ready written
    t.puppet->write(piece_with_header(frames::push_gradient{}, std::vector<std::byte>(4000), 4000,
                                      {seat_id{0}, 1}));
    CHECK(gradients->wait_for(1).size() == 1);
    t.puppet->shutdown();
  }
}

}  // namespace
}  // namespace poseidon
