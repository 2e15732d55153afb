#include "actors/links/link_writer.hpp"

#include "tests/actors/links/link_rig.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace poseidon;
using namespace std::chrono_literals;

namespace {

/// A writer on a real socket, whose clock the test moves. What it writes stays in the other socket.
struct writing_end {
  std::shared_ptr<tcp_socket> ours, peer;
  std::chrono::steady_clock::time_point now{};
  link_options options;
  link_binding binding;
  std::vector<std::string> written;

  writing_end() {
    std::tie(ours, peer) = test::socket_pair();
    binding.self.seat = seat_id{0};
    binding.peer = seat_id{1};
    options.socket = ours;
    options.now = [this] { return now; };
    options.trace = [this](const link_event& e) { written.emplace_back(e.kind); };
  }
  [[nodiscard]] std::uint64_t frames() const { return options.counters->frames_out; }
};

send_frame parameters_of(std::size_t bytes, std::uint64_t priority) {
  const auto values = std::make_shared<const std::vector<std::byte>>(bytes);
  return {
      frames::fresh_parameters{chunk_id{0}, version_id{1}}, {values, std::span(*values)}, priority};
}

send_frame stop_because(const std::string& reason) {
  return {frames::stop_requested{reason}, {}, 0};
}

}  // namespace

TEST_CASE("link_writer: it asks to be called again while something waits, and then no more") {
  writing_end t;
  link_writer writer(t.options);
  CHECK_FALSE(writer.write(t.binding, false).again);
  writer.push(parameters_of(100, 7));
  writer.push(parameters_of(300'000, 9));  // the last 38 KB are for the second write
  writer.push(stop_because("enough"));
  auto s = writer.write(t.binding, false);
  CHECK(s.again == 0ms);
  CHECK_FALSE(writer.empty());
  s = writer.write(t.binding, false);
  CHECK_FALSE(s.again);
  CHECK_FALSE(s.broken);
  CHECK(writer.empty());
  CHECK(t.frames() == 3);
  CHECK(t.written ==
        std::vector<std::string>{"stop_requested", "fresh_parameters", "fresh_parameters"});
}

TEST_CASE(
    "link_writer: beyond the budget only frames without a payload go, until the link closes") {
  writing_end t;
  t.options.budget_mbit_s = 0.001;
  link_writer writer(t.options);
  writer.push(parameters_of(200'000, 1));
  (void)writer.write(t.binding, false);
  CHECK(t.frames() == 1);
  writer.push(parameters_of(100, 1));
  writer.push(stop_because("enough"));
  auto s = writer.write(t.binding, false);
  CHECK(t.frames() == 2);
  CHECK(t.written.back() == "stop_requested");
  s = writer.write(t.binding, false);
  CHECK(s.again.value_or(0ms) > 0ms);
  CHECK(t.frames() == 2);
  s = writer.write(t.binding, true);
  CHECK(t.frames() == 3);
  CHECK_FALSE(s.again);
}

TEST_CASE(
    "link_writer: what waits and was said in a view that is over does not go with the next one's "
    "number") {
  writing_end t;
  link_writer writer(t.options);
  writer.push({frames::start_training{}, {}, 0});
  writer.push({frames::hold_training{}, {}, 0});
  writer.push({frames::drain{clock_id{7}}, {}, 0});
  writer.push({frames::worker_paused{clock_id{7}, true}, {}, 0});
  writer.push({frames::gather_history{version_id{7}}, {}, 0});
  writer.push(parameters_of(100, 1));
  writer.push(stop_because("enough"));  // it holds in any view
  writer.drop_what_waits();
  while (writer.write(t.binding, false).again) {
  }
  CHECK(t.written == std::vector<std::string>{"stop_requested"});
}

TEST_CASE("link_writer: a heartbeat goes when nothing was written for half of its interval") {
  writing_end t;
  t.options.heartbeat = 200ms;
  link_writer writer(t.options);
  t.now += 99ms;
  CHECK_FALSE(writer.write_heartbeat(t.binding).broken);
  CHECK(t.frames() == 0);
  t.now += 1ms;
  CHECK_FALSE(writer.write_heartbeat(t.binding).broken);
  CHECK(t.frames() == 1);
  CHECK_FALSE(writer.write_heartbeat(t.binding).broken);
  CHECK(t.frames() == 1);
}

TEST_CASE("link_writer: a frame that no peer would read breaks the link off, and says why") {
  writing_end t;
  link_writer writer(t.options);
  writer.push(stop_because("enough"));
  frames::worker_report report;
  report.sums.resize(1 << 20);
  writer.push({std::move(report), {}, 0});
  const auto s = writer.write(t.binding, false);
  REQUIRE(s.broken);
  CHECK(s.broken->find("worker_report takes ") == 0);
  CHECK_FALSE(s.again);
}

TEST_CASE("link_writer: when the connection has ended, the receiver has to find out why") {
  writing_end t;
  link_writer writer(t.options);
  t.ours->shutdown();
  writer.push(stop_because("enough"));
  const auto s = writer.write(t.binding, false);
  REQUIRE(s.broken);
  CHECK(s.broken->empty());
  CHECK(writer.empty());
}

TEST_CASE(
    "link_event: a sum that comes in place of fresh parameters counts as the version that it "
    "makes") {
  frames::summed_gradient sum;
  sum.chunk = chunk_id{3};
  sum.clock = clock_id{4};
  CHECK(describe(sum).number == 5);
  CHECK(describe(frames::fresh_parameters{chunk_id{3}, version_id{5}}).number == 5);
}
