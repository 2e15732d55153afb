#include "actors/links/control_budget.hpp"

#include "messages/wire/codec.hpp"

#include <doctest/doctest.h>

using namespace poseidon;
using std::chrono::milliseconds;

namespace {
constexpr control_budget::time_point start{};

/// How many frames of 100 bytes it admits at this moment, counted up to 5000.
std::size_t admitted(control_budget& b, const frame_header& h, control_budget::time_point now,
                     std::size_t bytes = 100) {
  std::size_t n = 0;
  try {
    while (n < 5000) {
      b.admit(h, bytes, now);
      ++n;
    }
  } catch (const bad_frame&) {
  }
  return n;
}
}  // namespace

TEST_CASE("control_budget: a thousand frames at once, then a thousand a second") {
  control_budget b(start);
  CHECK(admitted(b, frames::snapshot_requested{}, start) == 1000);
  control_budget c(start);
  for (int i = 0; i < 20000; ++i)
    c.admit(frames::watch{}, 100, start + i * milliseconds{1});  // throws if it is too strict
  CHECK(admitted(c, frames::watch{}, start + 20000 * milliseconds{1}) <= 1000);
}

TEST_CASE("control_budget: frames with nets are bounded by their bytes") {
  control_budget b(start);
  CHECK(admitted(b, frames::view{}, start, 4u << 20) == 8);
}

TEST_CASE(
    "control_budget: frames that their order bounds, and those that reach no mailbox, are free") {
  for (const frame_header& h : std::initializer_list<frame_header>{
           frames::heartbeat{}, frames::push_gradient{}, frames::worker_report{},
           frames::probe{1, false}, frames::history{}}) {
    CAPTURE(kind_name(h));
    control_budget b(start);
    CHECK(admitted(b, h, start) == 5000);
  }
  control_budget b(start);
  CHECK(admitted(b, frames::probe{1, true}, start, 1u << 20) == 1000);
}
