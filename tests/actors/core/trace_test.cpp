#include "actors/core/trace.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

using namespace poseidon;

namespace {

std::vector<std::uint64_t> new_clocks(trace_log& log) {
  std::vector<std::uint64_t> out;
  log.take_new(
      [&](std::size_t, const std::string&, const trace_span& s) { out.push_back(s.clock); });
  return out;
}

}  // namespace

TEST_CASE("trace_log: off until somebody watches, and then lanes are given out") {
  trace_log log(false);
  CHECK(log.lane("a") == nullptr);
  auto* early = log.early_lane("link");
  REQUIRE(early != nullptr);
  CHECK_FALSE(log.enabled());
  log.watch();
  CHECK(log.lane("b") != nullptr);
}

TEST_CASE("trace_log: an actor that is spawned anew goes on in its lane") {
  trace_log log(true);
  auto* lane = log.lane("stream compute [0]");
  CHECK(log.lane("stream compute [1]") != lane);
  CHECK(log.lane("stream compute [0]") == lane);
}

TEST_CASE("trace_log: a watcher gets each span once, over the borders of blocks") {
  for (const bool kept : {false, true}) {
    CAPTURE(kept);
    trace_log log(kept, true);
    auto* lane = log.lane("a");
    std::uint64_t next = 0, seen = 0;
    for (const std::size_t n : {1, 0, 511, 1, 512, 1300, 7}) {
      for (std::size_t i = 0; i < n; ++i) lane->record({"l", span_phase::forward, 0, 1, next++});
      const auto got = new_clocks(log);
      REQUIRE(got.size() == n);
      for (const auto clock : got) CHECK(clock == seen++);
    }
    std::size_t all = 0;
    lane->for_each([&](const trace_span&) { ++all; });
    if (kept) CHECK(all == next);     // a file will want them
    if (!kept) CHECK(all < 2 * 512);  // memory does not grow with the run
  }
}

TEST_CASE("trace_log: a lane without a writer gives its memory back when all has been taken") {
  for (const bool kept : {false, true}) {
    CAPTURE(kept);
    trace_log log(kept, true);
    auto* lane = log.early_lane("link 3 out");
    const auto held = [&] {
      std::size_t spans = 0;
      lane->for_each([&](const trace_span&) { ++spans; });
      return spans;
    };
    lane->record({"l", span_phase::push, 0, 1, 1});
    // Another link to the same peer, before the first one has gone.
    CHECK(log.early_lane("link 3 out") == lane);
    log.end_lane(lane);
    lane->record({"l", span_phase::push, 1, 2, 2});
    CHECK(new_clocks(log) == std::vector<std::uint64_t>{1, 2});
    CHECK(held() == 2);
    lane->record({"l", span_phase::push, 2, 3, 3});
    log.end_lane(lane);
    CHECK(held() == 3);  // nobody has read the last one
    CHECK(new_clocks(log) == std::vector<std::uint64_t>{3});
    CHECK(held() == (kept ? 3 : 0));
    CHECK(new_clocks(log).empty());
    CHECK(log.early_lane("link 3 out") == lane);
    lane->record({"l", span_phase::push, 3, 4, 4});
    CHECK(new_clocks(log) == std::vector<std::uint64_t>{4});
  }
}

TEST_CASE("trace_log: a writer and a watcher at the same time lose nothing") {
  trace_log log(false, true);
  auto* lane = log.lane("a");
  constexpr std::uint64_t spans = 200'000;
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (std::uint64_t i = 0; i < spans; ++i) lane->record({"l", span_phase::forward, 0, 1, i});
    done = true;
  });
  std::uint64_t expected = 0;
  bool in_order = true;
  for (bool last = false; !last;) {
    last = done;
    for (const auto clock : new_clocks(log)) in_order = in_order && clock == expected++;
  }
  writer.join();
  CHECK(in_order);
  CHECK(expected == spans);
}

TEST_CASE("trace_log: the file has the words of phases, also of those without a figure") {
  trace_log log(true);
  auto* lane = log.lane("copy_out [0]");
  lane->record({"fc7", span_phase::gradient_ready, 1000, 3000, 4});
  lane->record({"fc7", span_phase::copy_to_host, 3000, 4000, 5});
  std::string file;
  log.write([&](std::string_view piece) { file += piece; }, seat_id{0});
  CHECK(file.find(R"("cat":"gradient ready")") != std::string::npos);
  CHECK(file.find(R"("cat":"copy to host")") != std::string::npos);
}
