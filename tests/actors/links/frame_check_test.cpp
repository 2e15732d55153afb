// What a header may say in a run, frame by frame.
#include "actors/links/frame_check.hpp"

#include "messages/node_report.hpp"
#include "models/device/square_sum.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace poseidon {
namespace {

constexpr seat_id the_peer{1};

/// Two chunks of 10 and 20 values, the second in float16 from version 4 on; layer 1 goes by low rank, layer 2 broadcasts factors; the clocks 3 to
/// 9; a train net with two outputs and a test net with one.
link_limits limits_of_a_run() {
  link_limits l;
  l.chunk_values = {10, 20};
  l.chunk_formats = {wire_format::float32, wire_format::float16};
  l.first_version = 3;
  l.end_clock = 10;
  l.history_slots = 2;
  l.clips = true;
  l.watches = true;
  l.factors = {{}, {}, factor_shape{4, 3, 2}};
  l.lowrank = {{}, {80, 48}};
  l.reports = {{3, 1}, {1, 5}};
  return l;
}

/// "" if it passes, else what the peer's user reads.
std::string refusal_of(frame_header h, std::size_t payload_bytes = 0,
                       const link_limits& limits = limits_of_a_run(), seat_id from = the_peer,
                       seat_id peer = the_peer) {
  decoded_header d;
  d.header = std::move(h);
  d.payload_bytes = payload_bytes;
  d.from.seat = from;
  try {
    check_frame(d, peer, limits);
  } catch (const bad_frame& e) {
    return e.what();
  }
  return "";
}

TEST_CASE(
    "frame_check: only programs' gradients and their means name a format, and have its size") {
  auto l = limits_of_a_run();
  const step_mark half{0, 0, wire_format::float16};
  const frames::push_gradient gradient{chunk_id{0}, clock_id{3}, false, half};
  const frames::fresh_parameters mean{chunk_id{0}, version_id{4}, false, wire_format::bfloat16};
  CHECK(refusal_of(gradient, 20, l) ==
        "push_gradient: format of chunk 0 is 1, expected 0, as the view says it");
  CHECK(refusal_of(mean, 20, l) ==
        "fresh_parameters: format of chunk 0 is 2, expected 0, as the view says it");
  l.names_formats = true;
  CHECK(refusal_of(gradient, 20, l).empty());
  CHECK(refusal_of(mean, 20, l).empty());
  CHECK(refusal_of(gradient, 40, l) == "push_gradient: payload size of chunk 0 is 40, expected 20");
  CHECK(refusal_of(mean, 40, l) == "fresh_parameters: payload size of chunk 0 is 40, expected 20");
}

TEST_CASE("frame_check: values in blocks are as long as their steps and integers") {
  auto l = limits_of_a_run();
  l.chunk_values = {257, 257};
  l.chunk_formats = {wire_format::int8, wire_format::int4};
  const frames::push_gradient large{chunk_id{0}, clock_id{3}}, small{chunk_id{1}, clock_id{3}};
  CHECK(refusal_of(large, 261, l).empty());
  CHECK(refusal_of(small, 133, l).empty());
  CHECK(refusal_of(large, 257, l) == "push_gradient: payload size of chunk 0 is 257, expected 261");
  CHECK(refusal_of(small, 132, l) == "push_gradient: payload size of chunk 1 is 132, expected 133");
  CHECK(refusal_of(frames::fresh_parameters{chunk_id{1}, version_id{4}}, 133, l).empty());
  CHECK(refusal_of(frames::fresh_parameters{chunk_id{1}, version_id{3}}, 133, l) ==
        "fresh_parameters: payload size of chunk 1 is 133, expected 1028");
  l.names_formats = true;
  const step_mark four_bits{0, 0, wire_format::int4};
  const frames::push_gradient named{chunk_id{0}, clock_id{3}, false, four_bits};
  CHECK(refusal_of(named, 133, l).empty());
  CHECK(refusal_of(named, 261, l) == "push_gradient: payload size of chunk 0 is 261, expected 133");
}

TEST_CASE(
    "frame_check: only where programs compute gradients a clock may have none, without a payload") {
  auto l = limits_of_a_run();
  const frames::push_gradient none{chunk_id{0}, clock_id{3}, true};
  CHECK(refusal_of(none, 0, l) ==
        "push_gradient: nothing is set, expected unset, as this run's nets always have gradients");
  l.may_say_nothing = true;
  CHECK(refusal_of(none, 0, l).empty());
  CHECK(refusal_of(frames::fresh_parameters{chunk_id{0}, version_id{4}, true}, 0, l).empty());
  CHECK(refusal_of(none, 40, l) == "push_gradient: payload size of nothing is 40, expected 0");
  CHECK(refusal_of(frames::push_gradient{chunk_id{0}, clock_id{3}}, 0, l) ==
        "push_gradient: payload size of chunk 0 is 0, expected 40");
}

TEST_CASE("frame_check: only where programs compute gradients factors may have no rows") {
  auto l = limits_of_a_run();
  const frames::factors none{layer_id{2}, clock_id{3}, 0, 0};
  CHECK(refusal_of(none, 0, l) == "factors: rows of layer 2 is 0, expected 1 to 4");
  l.may_say_nothing = true;
  CHECK(refusal_of(none, 0, l).empty());
  CHECK(refusal_of(none, 4, l) == "factors: payload size of layer 2 is 4, expected 0");
  CHECK(refusal_of(frames::factors{layer_id{2}, clock_id{3}, 0, 1}, 0, l) ==
        "factors: first value of layer 2 is 1, expected less than 0");
}

TEST_CASE("frame_check: what the run has passes") {
  CHECK(refusal_of(frames::push_gradient{chunk_id{0}, clock_id{3}}, 40).empty());
  CHECK(refusal_of(frames::push_gradient{chunk_id{1}, clock_id{3}}, 40).empty());
  CHECK(refusal_of(frames::fresh_parameters{chunk_id{1}, version_id{3}}, 80).empty());
  CHECK(refusal_of(frames::fresh_parameters{chunk_id{1}, version_id{4}}, 40).empty());
  CHECK(refusal_of(frames::install_history{chunk_id{1}, 1, 19}, 4).empty());
  CHECK(refusal_of(frames::history{chunk_id{1}, 1, version_id{3}}, 80).empty());
  CHECK(refusal_of(frames::gradient_squares{clock_id{3}}, square_sum::bytes).empty());
  CHECK(refusal_of(frames::factors{layer_id{2}, clock_id{3}, 4, 0}, 48).empty());
  CHECK(refusal_of(frames::lowrank_factor{layer_id{1}, clock_id{3}, false}, 80).empty());
  CHECK(refusal_of(frames::lowrank_factor{layer_id{1}, clock_id{3}, true}, 48).empty());
  CHECK(refusal_of(frames::report{}, max_report_bytes).empty());
  CHECK(refusal_of(frames::worker_report{clock_id{9}, -1, 1, {1, 2, 3}}).empty());
  CHECK(refusal_of(frames::worker_report{clock_id{3}, 0, 5, {1}}).empty());
  CHECK(refusal_of(frames::member_ready{}).empty());
  CHECK(refusal_of(frames::start_training{}).empty());
}

TEST_CASE("frame_check: P and Q are of a layer on a lowrank route, each of its length") {
  CHECK(refusal_of(frames::lowrank_factor{layer_id{1}, clock_id{3}, true}, 80) ==
        "lowrank_factor: payload size of layer 1 is 80, expected 48");
  CHECK(refusal_of(frames::lowrank_factor{layer_id{1}, clock_id{3}, false}, 0) ==
        "lowrank_factor: payload size of layer 1 is 0, expected 80");
  for (const unsigned layer : {0u, 2u})
    CHECK(refusal_of(frames::lowrank_factor{layer_id{layer}, clock_id{3}, false}, 80) ==
          "lowrank_factor: layer is " + std::to_string(layer) +
              ", expected one whose route is lowrank");
}

TEST_CASE("frame_check: before the view frames without values pass, and no others") {
  const link_limits none;
  const auto early = [&](frame_header h, std::size_t bytes = 0) {
    return refusal_of(std::move(h), bytes, none, seat_id{0}, no_seat);
  };
  CHECK(early(frames::heartbeat{}).empty());
  CHECK(early(frames::view{}).empty());
  CHECK(early(frames::time_net{}).empty());
  CHECK(early(frames::gathering{}).empty());
  CHECK(early(frames::probe{1, true}, 1000).empty());
  CHECK(early(frames::member_ready{}).empty());
  CHECK(early(frames::push_gradient{}, 4) ==
        "push_gradient: chunk is 0, expected none before this node knows the run's chunks");
  CHECK(early(frames::factors{}, 4) ==
        "factors: layer is 0, expected one whose route is factor_broadcast");
  CHECK(early(frames::gradient_squares{}, square_sum::bytes) ==
        "gradient_squares: clip_gradients is set, expected unset, as in this run's solver");
  CHECK(early(frames::report{}, 10) ==
        "report: reader is this node, expected the first node, while it shows the run");
  CHECK(early(frames::worker_report{}) ==
        "worker_report: reader is this node, expected the first node, in training");
}

TEST_CASE("frame_check: a peer speaks for itself alone, and for no node before it has a seat") {
  const auto limits = limits_of_a_run();
  CHECK(refusal_of(frames::heartbeat{}, 0, limits, seat_id{2}) ==
        "heartbeat: from is 2, expected 1");
  CHECK(refusal_of(frames::heartbeat{}, 0, limits, no_seat).empty());
  CHECK(refusal_of(frames::heartbeat{}, 0, limits, seat_id{2}, no_seat).empty());
}

TEST_CASE(
    "frame_check: values, and what is computed from them, belong to one view; what nodes agree on "
    "does not") {
  CHECK(is_of_a_view(frames::push_gradient{}));
  CHECK(is_of_a_view(frames::gradient_squares{}));
  CHECK(is_of_a_view(frames::factors{}));
  CHECK(is_of_a_view(frames::fresh_parameters{}));
  CHECK(is_of_a_view(frames::summed_gradient{}));
  CHECK(is_of_a_view(frames::install_history{}));
  CHECK(is_of_a_view(frames::shared_state{}));
  CHECK(is_of_a_view(frames::history{}));
  CHECK(is_of_a_view(frames::worker_report{}));
  CHECK(!is_of_a_view(frames::heartbeat{}));
  CHECK(!is_of_a_view(frames::next_view{}));
  CHECK(!is_of_a_view(frames::member_ready{}));
  CHECK(!is_of_a_view(frames::start_training{}));
  CHECK(!is_of_a_view(frames::worker_paused{}));
  CHECK(!is_of_a_view(frames::goodbye{}));
}

TEST_CASE("frame_check: shared state comes in the pieces of its entries, where a node takes any") {
  CHECK(refusal_of(frames::shared_state{0, 0}, 4) ==
        "shared_state: index is 0, expected none, as this node takes no shared state");
  auto l = limits_of_a_run();
  l.shared = {0, 3, (2u << 20) + 1};
  const auto refused = [&](std::uint32_t index, std::uint64_t first, std::size_t bytes) {
    return refusal_of(frames::shared_state{index, first}, bytes, l);
  };
  CHECK(refused(1, 0, 3).empty());
  CHECK(refused(2, 0, 2u << 20).empty());
  CHECK(refused(2, 2u << 20, 1).empty());
  CHECK(refused(3, 0, 3) == "shared_state: index is 3, expected at most 2");
  CHECK(refused(0, 0, 0) ==
        "shared_state: first byte of entry 0 is 0, expected a multiple of 2097152 less than 0");
  CHECK(refused(1, 1, 2) ==
        "shared_state: first byte of entry 1 is 1, expected a multiple of 2097152 less than 3");
  CHECK(refused(2, 4u << 20, 1) ==
        "shared_state: first byte of entry 2 is 4194304, expected a multiple of 2097152 less than "
        "2097153");
  CHECK(refused(1, 0, 2) == "shared_state: payload size of entry 1 is 2, expected 3");
  CHECK(refused(2, 2u << 20, 2) == "shared_state: payload size of entry 2 is 2, expected 1");
}

TEST_CASE("frame_check: values of a wrong place or size are refused") {
  CHECK(refusal_of(frames::push_gradient{chunk_id{2}, clock_id{3}}, 40) ==
        "push_gradient: chunk is 2, expected at most 1");
  CHECK(refusal_of(frames::push_gradient{chunk_id{1}, clock_id{3}}, 80) ==
        "push_gradient: payload size of chunk 1 is 80, expected 40");
  CHECK(refusal_of(frames::fresh_parameters{chunk_id{1}, version_id{3}}, 40) ==
        "fresh_parameters: payload size of chunk 1 is 40, expected 80");
  CHECK(refusal_of(frames::history{chunk_id{0}, 2, version_id{3}}, 40) ==
        "history: slot is 2, expected less than 2");
  CHECK(refusal_of(frames::install_history{chunk_id{1}, 0, 20}, 4) ==
        "install_history: first value of chunk 1 is 20, expected less than 20");
  for (const std::size_t bytes : {0, 3, 8})
    CHECK(refusal_of(frames::install_history{chunk_id{1}, 0, 19}, bytes) ==
          "install_history: payload size of chunk 1 is " + std::to_string(bytes) +
              ", expected a multiple of 4 up to 4");
  CHECK(refusal_of(frames::gradient_squares{clock_id{3}}, 4000) ==
        "gradient_squares: payload size is 4000, expected 4096");
  CHECK(refusal_of(frames::factors{layer_id{1}, clock_id{3}, 4, 0}, 48) ==
        "factors: layer is 1, expected one whose route is factor_broadcast");
  CHECK(refusal_of(frames::factors{layer_id{2}, clock_id{3}, 5, 0}, 48) ==
        "factors: rows of layer 2 is 5, expected 1 to 4");
  CHECK(refusal_of(frames::factors{layer_id{2}, clock_id{3}, 4, 20}, 48) ==
        "factors: first value of layer 2 is 20, expected less than 20");
  CHECK(refusal_of(frames::factors{layer_id{2}, clock_id{3}, 4, 12}, 48) ==
        "factors: payload size of layer 2 is 48, expected 32");
  CHECK(refusal_of(frames::report{}, max_report_bytes + 1) ==
        "report: payload size is 4194305, expected at most 4194304");
}

TEST_CASE(
    "frame_check: a worker_report of a net, clock, length or weight that the run has not is "
    "refused") {
  const auto report = [](std::uint64_t clock, std::int32_t test_net, std::uint32_t passes,
                         std::size_t sums) {
    return refusal_of(
        frames::worker_report{clock_id{clock}, test_net, passes, std::vector<double>(sums)});
  };
  CHECK(report(3, 1, 5, 1) == "worker_report: test net is 1, expected -1 to 0");
  CHECK(report(2, -1, 1, 3) == "worker_report: clock is 2, expected 3 or more and less than 10");
  CHECK(report(10, -1, 1, 3) == "worker_report: clock is 10, expected 3 or more and less than 10");
  CHECK(report(10, 0, 5, 1).empty());  // the test at the end
  CHECK(report(11, 0, 5, 1) == "worker_report: clock is 11, expected 3 or more and less than 11");
  CHECK(report(std::numeric_limits<std::uint64_t>::max(), 0, 5, 1) ==
        "worker_report: clock is 18446744073709551615, expected 3 or more and less than 11");
  CHECK(report(3, -1, 1, 2) == "worker_report: number of sums is 2, expected 3");
  CHECK(report(3, 0, 5, 3) == "worker_report: number of sums is 3, expected 1");
  CHECK(report(3, -1, 0, 3) == "worker_report: number of passes is 0, expected 1");
  CHECK(report(3, 0, 4, 1) == "worker_report: number of passes is 4, expected 5");
}

}  // namespace
}  // namespace poseidon
