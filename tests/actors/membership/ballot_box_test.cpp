#include "actors/membership/ballot_box.hpp"

#include "tests/actors/membership/ballot_rig.hpp"
#include "tests/actors/membership/seats.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace poseidon;
using test::at_version;
using test::seats;

namespace {

using test::ballot_rig;
using test::named;
using prepare = frames::view_prepare;
using promise = frames::view_promise;
using accept = frames::view_accept;
using accepted = frames::view_accepted;
using chosen = frames::next_view;

}  // namespace

TEST_CASE(
    "ballot_box: one proposer and no fault: all members decide what it makes of all promises") {
  ballot_rig t(3);
  CHECK(!t[0].frozen());
  t.propose(0);
  CHECK(t[0].frozen());
  CHECK(!t[0].decided());
  t.deliver_all();
  for (std::uint32_t s = 0; s < 3; ++s) {
    CHECK(t.decided(s) == "of 0");
    CHECK(t[s].frozen());
  }
  REQUIRE(t.seen.size() == 3);
  CHECK(t.seen[seat_id{2}].stand.whole == version_id{42});
}

TEST_CASE("ballot_box: a node that is alone in its view decides without a word") {
  ballot_rig t(1);
  t.propose(0);
  CHECK(t.waiting.empty());
  CHECK(t.decided(0) == "of 0");
}

TEST_CASE("ballot_box: a quorum does not decide while a member that is heard has not answered") {
  ballot_rig t(3);
  t.propose(0);
  t.deliver<prepare>(seats({0, 1}));
  t.deliver<promise>(seats({0, 1}));
  CHECK(t[0].waits_for_stragglers());
  CHECK(t.deliver<accept>(t.members) == 0);

  SUBCASE("it answers") {
    t.deliver<prepare>(t.members);
    t.deliver<promise>(t.members);
    CHECK(!t[0].waits_for_stragglers());
    CHECK(t.seen.size() == 3);
  }
  SUBCASE("the limit is over") {
    t.limit(0);
    CHECK(t.seen.size() == 2);
  }
  SUBCASE("it is not heard any more") {
    t.says[0].hears = seats({0, 1});
    t.send(0, t[0].look_again(t.knows(0)));
    CHECK(t.seen.size() == 2);
  }
  t.deliver_all();
  CHECK(t.decided(1) == "of 0");
}

TEST_CASE("ballot_box: a straggler limit of an earlier ballot does nothing") {
  ballot_rig t(5);
  t.propose(0);
  t.limit(0);
  CHECK(!t[0].waits_for_stragglers());
  t.deliver<prepare>(seats({0, 1, 2}));
  t.deliver<promise>(seats({0, 1, 2}));
  CHECK(t[0].waits_for_stragglers());
}

TEST_CASE(
    "ballot_box: what one member of a quorum has accepted is proposed again, whoever proposes") {
  ballot_rig t(3);
  t.says[0].hears = seats({0, 1});
  t.propose(0);
  t.deliver<prepare>(seats({0, 1}));
  t.deliver<promise>(seats({0, 1}));
  REQUIRE(t.deliver<accept>(seats({0, 1})) == 1);  // 1 has accepted; 0 never hears of it
  t.waiting.clear();
  t.says[2].hears = seats({1, 2});
  t.propose(2);
  t.deliver<prepare>(seats({1, 2}));
  t.deliver<promise>(seats({1, 2}));
  t.deliver<accept>(seats({1, 2}));
  t.deliver<accepted>(seats({1, 2}));
  CHECK(t.decided(2) == "of 0");
}

TEST_CASE("ballot_box: of several accepted views the one of the highest ballot is proposed again") {
  ballot_rig t(3);
  t.says[0].hears = seats({0});
  t.propose(0);  // ballot 1.0
  t.propose(0);  // ballot 2.0
  t.waiting.clear();
  const ballot now{2, seat_id{0}};
  t.hear(0, 1, t.promised(1, now, {1, seat_id{1}}, "older"));
  REQUIRE(t.waiting.size() == 2);
  CHECK(std::get<accept>(t.waiting[0].what).value.why == "older");

  ballot_rig u(5);
  u.propose(0);
  u.propose(0);
  u.waiting.clear();
  u.hear(0, 1, u.promised(1, now, {1, seat_id{1}}, "older"));
  u.hear(0, 2, u.promised(2, now, {1, seat_id{3}}, "newer"));
  u.limit(0);
  REQUIRE(u.waiting.size() == 4);
  CHECK(std::get<accept>(u.waiting[0].what).value.why == "newer");
}

TEST_CASE("ballot_box: a promise to a higher ballot refuses the lower one's prepare and accept") {
  ballot_rig t(3);
  t.propose(2);  // 1.2
  t.deliver<prepare>(seats({1, 2}));
  t.waiting.clear();
  t.hear(1, 0, prepare{7, {1, seat_id{0}}});
  t.hear(1, 0, accept{7, {1, seat_id{0}}, named("late")});
  REQUIRE(t.waiting.size() == 2);
  CHECK(std::get<promise>(t.waiting[0].what).promised == ballot{1, seat_id{2}});
  CHECK(std::get<accepted>(t.waiting[1].what).promised == ballot{1, seat_id{2}});
  CHECK(!t[1].accepted_vote());
}

TEST_CASE(
    "ballot_box: a refused proposer stops, and its next ballot is above the one that refused it") {
  ballot_rig t(3);
  t.propose(0);
  t.hear(0, 1, promise{7, {1, seat_id{0}}, {6, seat_id{1}}});
  CHECK(!t[0].proposes());
  t.waiting.clear();
  t.propose(0);
  REQUIRE(!t.waiting.empty());
  CHECK(std::get<prepare>(t.waiting[0].what).number == ballot{7, seat_id{0}});
}

TEST_CASE("ballot_box: a proposer that promises a higher ballot gives up its own") {
  ballot_rig t(3);
  t.propose(0);
  t.propose(2);
  t.deliver<prepare>(seats({0, 2}));
  CHECK(!t[0].proposes());
  CHECK(t[2].proposes());
  t.deliver_all();
  for (std::uint32_t s = 0; s < 3; ++s) CHECK(t.decided(s) == "of 2");
}

TEST_CASE("ballot_box: answers to an earlier ballot, and the same answer again, do not count") {
  ballot_rig t(5);
  t.propose(0);
  t.waiting.clear();
  t.propose(0);
  t.waiting.clear();
  const ballot old{1, seat_id{0}}, now{2, seat_id{0}};
  for (const auto from : {1u, 2u, 3u, 4u}) t.hear(0, from, t.promised(from, old));
  CHECK(t.waiting.empty());
  for (int again = 0; again < 3; ++again) t.hear(0, 1, t.promised(1, now));
  t.limit(0);
  CHECK(t.waiting.empty());  // two of five
  t.hear(0, 2, t.promised(2, now));
  t.limit(0);
  CHECK(t.waiting.size() == 4);
  t.waiting.clear();
  for (int again = 0; again < 3; ++again) t.hear(0, 1, accepted{7, now, now});
  CHECK(t.decided(0) == "nothing");
  t.hear(0, 4, accepted{7, now, now});  // who has not promised may accept
  CHECK(t.decided(0) == "of 0");
}

TEST_CASE(
    "ballot_box: who asks about an older view is told this one; what is newer changes nothing") {
  ballot_rig t(3);
  t.hear(1, 9, prepare{6, {4, seat_id{9}}});
  REQUIRE(t.waiting.size() == 1);
  CHECK(t.waiting[0].to == seat_id{9});
  CHECK(std::get<chosen>(t.waiting[0].what).epoch == 7);
  CHECK(std::get<chosen>(t.waiting[0].what).why == "seven");
  t.hear(1, 9, accepted{6, {4, seat_id{9}}, {4, seat_id{9}}});  // no question
  t.hear(1, 0, prepare{8, {1, seat_id{0}}});
  CHECK(t.waiting.size() == 1);
  CHECK(!t[1].frozen());
}

TEST_CASE("ballot_box: who is no member of the view is not heard") {
  ballot_rig t(3);
  t.hear(1, 9, prepare{7, {4, seat_id{9}}});
  t.hear(1, 9, accept{7, {4, seat_id{9}}, named("theirs")});
  CHECK(t.waiting.empty());
  CHECK(!t[1].frozen());
}

TEST_CASE("ballot_box: who has counted the votes answers with the view, and proposes no other") {
  ballot_rig t(2);
  t.propose(0);
  while (!t[0].decided())
    t.deliver<prepare>(t.members), t.deliver<promise>(t.members), t.deliver<accept>(t.members),
        t.deliver<accepted>(t.members);
  t.waiting.clear();
  t.propose(0);
  CHECK(t.waiting.empty());
  t.hear(0, 1, accepted{7, {1, seat_id{0}}, {1, seat_id{0}}});
  CHECK(t.waiting.empty());
  t.hear(0, 1, prepare{7, {5, seat_id{1}}});
  REQUIRE(t.waiting.size() == 1);
  CHECK(std::get<chosen>(t.waiting[0].what).why == "of 0");
}

TEST_CASE("ballot_box: a proved death lets the living decide, if all of them answer") {
  ballot_rig t(2);
  t.says[1] = {at_version(41), seats({1}), {}};
  t.propose(1);
  CHECK(t.decided(1) == "nothing");
  t.says[1].dead = seats({0});
  t.send(1, t[1].look_again(t.knows(1)));
  CHECK(t.decided(1) == "of 1");
}

TEST_CASE("ballot_box: while no view can be made, a further promise is waited for") {
  ballot_rig t(3);
  t.propose(0);
  auto knows = t.knows(0);
  knows.next_value = [](const testimonies& all) -> std::optional<frames::next_view> {
    return all.size() < 3 ? std::nullopt : std::optional(named("of three"));
  };
  ballot_box::letters out;
  const ballot now{1, seat_id{0}};
  t[0].hear(seat_id{1}, t.promised(1, now), knows, out);
  for (const auto& l : t[0].straggler_limit_over(knows)) out.push_back(l);
  CHECK(out.empty());
  t[0].hear(seat_id{2}, t.promised(2, now), knows, out);
  REQUIRE(out.size() == 2);
  CHECK(std::get<accept>(out[0].frame).value.why == "of three");
}
