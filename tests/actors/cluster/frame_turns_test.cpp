#include "actors/cluster/frame_turns.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

TEST_CASE("frame_turns: what is said once for a view may be said again in the next one") {
  frame_turns t;
  const frames::member_ready ready{1};
  CHECK(!t.refusal_of(ready, seat_id{1}));
  CHECK(!t.refusal_of(ready, seat_id{2}));
  CHECK(t.refusal_of(ready, seat_id{1}) ==
        "member_ready: times in a view is 2 times, expected once at most");
  t.next_view();
  CHECK(!t.refusal_of(ready, seat_id{1}));
}

TEST_CASE("frame_turns: what is said once for a run is not said again in another view") {
  frame_turns t;
  const frames::join_ready ready{1};
  CHECK(!t.refusal_of(ready, seat_id{1}));
  t.next_view();
  CHECK(t.refusal_of(ready, seat_id{1}));
}

TEST_CASE("frame_turns: a pause is said when a node holds, and when it has drained") {
  frame_turns t;
  const frames::worker_paused paused{clock_id{4}, false};
  CHECK(!t.refusal_of(paused, seat_id{1}));
  CHECK(!t.refusal_of(paused, seat_id{1}));
  CHECK(t.refusal_of(paused, seat_id{1}));
}
