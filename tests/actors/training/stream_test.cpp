#include "actors/training/stream.hpp"

#include "tests/sim.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {

/// A stream that feeds a device of the test's.
struct stream_rig {
  test::sim sim;
  std::shared_ptr<int> replica = std::make_shared<int>();
  std::shared_ptr<overlap_meter> overlap = std::make_shared<overlap_meter>(1);
  std::shared_ptr<copies_in_flight> copies = std::make_shared<copies_in_flight>();
  test::probe<copy_to_host> copy_out = sim.listen<copy_to_host>();
  handle<stream> it;

  explicit stream_rig(bool is_asynchronous) {
    stream_setup s;
    s.enter_thread = [] {};
    s.first_nonfinite = [r = replica]() -> std::optional<std::string> { return std::nullopt; };
    s.overlap = overlap;
    s.copy_out = copy_out.in;
    if (is_asynchronous) s.copies = copies;
    it = sim.spawn<stream>("stream compute [0]", std::move(s));
  }
  void issue(bool copied, bool waited) {
    issue_work work;
    work.run = [] {};
    if (copied) work.to_host.begin = [](completion) {};
    if (waited) work.waited_since_ns = 1;  // long ago
    work.label.layer = "conv1";
    work.label.phase = span_phase::forward;
    sim.tell(it, std::move(work));
    sim.settle();
  }
  std::uint64_t stalled_ns() { return overlap->read(now_ns()).exposed_ns; }
};

}  // namespace

TEST_CASE("stream: work that waited for parameters has stalled since the work before it") {
  stream_rig t(false);
  t.issue(false, true);
  const auto once = t.stalled_ns();
  CHECK(once > 0);
  t.issue(false, false);
  CHECK(t.stalled_ns() == once);
  t.issue(false, true);
  CHECK(t.stalled_ns() > once);
  CHECK(t.stalled_ns() < 2 * once);  // not from the beginning again
}

TEST_CASE("stream: an asynchronous device that still computes what was issued does not stall") {
  stream_rig t(true);
  t.issue(true, false);  // a backward kernel, whose gradient is copied to the host
  CHECK(t.copy_out.got->size() == 1);
  t.issue(false, true);
  CHECK(t.stalled_ns() == 0);
  const auto copied_at = now_ns();
  t.copies->finished(copied_at);
  t.issue(false, true);
  CHECK(t.stalled_ns() > 0);
  CHECK(t.stalled_ns() <= static_cast<std::uint64_t>(now_ns() - copied_at));
}

TEST_CASE("stream: one that has ended holds no replica, whoever has a handle to it") {
  stream_rig t(true);
  t.issue(false, false);
  t.sim.tell(t.it, shut_down{});
  t.sim.settle();
  CHECK(t.replica.use_count() == 1);
}
