#include "actors/training/stream.hpp"

#include "tests/sim.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {

/// A stream that feeds a device of the test's.
struct stream_rig {
  test::sim sim;
  std::shared_ptr<overlap_meter> overlap = std::make_shared<overlap_meter>(1);
  std::shared_ptr<copies_in_flight> home = std::make_shared<copies_in_flight>();
  test::probe<copy_to_host> copies = sim.listen<copy_to_host>();
  handle<stream> it;

  explicit stream_rig(bool is_asynchronous) {
    stream_setup s;
    s.enter_thread = [] {};
    s.overlap = overlap;
    s.copy_out = copies.in;
    if (is_asynchronous) s.home = home;
    it = sim.spawn<stream>("stream compute [0]", std::move(s));
  }
  void issue(bool comes_home, bool waited) {
    issue_work work;
    work.run = [] {};
    if (comes_home) work.copy_to_host = [](told_when_over) {};
    if (waited) work.waited_since_ns = 1;  // since ever
    work.layer = "conv1";
    work.phase = "forward";
    sim.tell(it, std::move(work));
    sim.settle();
  }
  std::uint64_t stood_still() { return overlap->read(now_ns()).exposed_ns; }
};

}  // namespace

TEST_CASE("stream: work that waited for parameters has stood still since the work before it") {
  stream_rig t(false);
  t.issue(false, true);
  const auto once = t.stood_still();
  CHECK(once > 0);
  t.issue(false, false);
  CHECK(t.stood_still() == once);
  t.issue(false, true);
  CHECK(t.stood_still() > once);
  CHECK(t.stood_still() < 2 * once);  // not since ever again
}

TEST_CASE(
    "stream: a device that still computes what the host has handed over does not stand still") {
  stream_rig t(true);
  t.issue(true, false);  // a backward kernel, of which the gradient comes home
  CHECK(t.copies.got->size() == 1);
  t.issue(false, true);
  CHECK(t.stood_still() == 0);
  const auto home_at = now_ns();
  t.home->here(home_at);
  t.issue(false, true);
  CHECK(t.stood_still() > 0);
  CHECK(t.stood_still() <= static_cast<std::uint64_t>(now_ns() - home_at));
}
