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
using test::name_box;
using test::named;
using test::view_name;
using prepare = name_box::prepare;
using promise = name_box::promise;
using accept = name_box::accept;
using accepted = name_box::accepted;
using chosen = name_box::chosen;

}  // namespace

TEST_CASE(
    "ballot_box: one proposer and no fault: all members decide what it makes of all promises") {
  ballot_rig t(3);
  CHECK(!t[0].frozen());
  t.propose(0);
  CHECK(t[0].frozen());
  CHECK(t[0].decided() == std::nullopt);
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
  CHECK(t.hear(0, 1, promise{7, now, now, name_box::vote{{1, seat_id{1}}, named("older")}, {}}) ==
        name_box::hearing::heard);
  REQUIRE(t.waiting.size() == 2);
  CHECK(*std::get<accept>(t.waiting[0].what).value == "older");

  ballot_rig u(5);
  u.propose(0);
  u.propose(0);
  u.waiting.clear();
  (void)u.hear(0, 1, promise{7, now, now, name_box::vote{{1, seat_id{1}}, named("older")}, {}});
  (void)u.hear(0, 2, promise{7, now, now, name_box::vote{{1, seat_id{3}}, named("newer")}, {}});
  u.limit(0);
  REQUIRE(u.waiting.size() == 4);
  CHECK(*std::get<accept>(u.waiting[0].what).value == "newer");
}

TEST_CASE("ballot_box: a promise to a higher ballot refuses the lower one's prepare and accept") {
  ballot_rig t(3);
  t.propose(2);  // 1.2
  t.deliver<prepare>(seats({1, 2}));
  t.waiting.clear();
  (void)t.hear(1, 0, prepare{7, {1, seat_id{0}}});
  (void)t.hear(1, 0, accept{7, {1, seat_id{0}}, named("late")});
  REQUIRE(t.waiting.size() == 2);
  CHECK(std::get<promise>(t.waiting[0].what).promised == ballot{1, seat_id{2}});
  CHECK(std::get<accepted>(t.waiting[1].what).promised == ballot{1, seat_id{2}});
  CHECK(!t[1].accepted_vote());
}

TEST_CASE(
    "ballot_box: a refused proposer stops, and its next ballot is above the one that refused it") {
  ballot_rig t(3);
  t.propose(0);
  CHECK(t.hear(0, 1, promise{7, {1, seat_id{0}}, {6, seat_id{1}}, std::nullopt, {}}) ==
        name_box::hearing::heard);
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
  for (const auto from : {1u, 2u, 3u, 4u})
    (void)t.hear(0, from, promise{7, old, old, {}, t.says[from]});
  CHECK(t.waiting.empty());
  for (int again = 0; again < 3; ++again) (void)t.hear(0, 1, promise{7, now, now, {}, t.says[1]});
  t.limit(0);
  CHECK(t.waiting.empty());  // two of five
  (void)t.hear(0, 2, promise{7, now, now, {}, t.says[2]});
  t.limit(0);
  CHECK(t.waiting.size() == 4);
  t.waiting.clear();
  for (int again = 0; again < 3; ++again) (void)t.hear(0, 1, accepted{7, now, now});
  CHECK(t.decided(0) == "nothing");
  (void)t.hear(0, 4, accepted{7, now, now});  // who has not promised may accept
  CHECK(t.decided(0) == "of 0");
}

TEST_CASE(
    "ballot_box: who asks about an older view is told this one; what is newer changes nothing") {
  ballot_rig t(3);
  CHECK(t.hear(1, 9, prepare{6, {4, seat_id{9}}}) == name_box::hearing::older);
  REQUIRE(t.waiting.size() == 1);
  CHECK(t.waiting[0].to == seat_id{9});
  CHECK(std::get<chosen>(t.waiting[0].what).epoch == 7);
  CHECK(*std::get<chosen>(t.waiting[0].what).value == "seven");
  CHECK(t.hear(1, 0, prepare{8, {1, seat_id{0}}}) == name_box::hearing::newer);
  CHECK(t.hear(1, 0, chosen{9, named("nine")}) == name_box::hearing::newer);
  CHECK(t.hear(1, 0, chosen{7, named("seven")}) == name_box::hearing::older);
  CHECK(t.waiting.size() == 1);
  CHECK(!t[1].frozen());
  CHECK(t.decided(1) == "nothing");
}

TEST_CASE("ballot_box: who is no member of the view is not heard, but may tell what was chosen") {
  ballot_rig t(3);
  CHECK(t.hear(1, 9, prepare{7, {4, seat_id{9}}}) == name_box::hearing::stranger);
  CHECK(t.hear(1, 9, accept{7, {4, seat_id{9}}, named("theirs")}) == name_box::hearing::stranger);
  CHECK(t.waiting.empty());
  CHECK(!t[1].frozen());
  CHECK(t.hear(1, 9, chosen{8, named("eight")}) == name_box::hearing::heard);
  CHECK(t.decided(1) == "eight");
}

TEST_CASE("ballot_box: who knows the next view answers with it, and proposes no other") {
  ballot_rig t(3);
  CHECK(t.hear(1, 0, chosen{8, named("eight")}) == name_box::hearing::heard);
  t.propose(1);
  CHECK(t.waiting.empty());
  (void)t.hear(1, 2, prepare{7, {5, seat_id{2}}});
  REQUIRE(t.waiting.size() == 1);
  CHECK(*std::get<chosen>(t.waiting[0].what).value == "eight");
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
  knows.next_value = [](const testimonies& all) -> std::optional<view_name> {
    return all.size() < 3 ? std::nullopt : std::optional(named("of three"));
  };
  name_box::letters out;
  const ballot now{1, seat_id{0}};
  (void)t[0].hear(seat_id{1}, promise{7, now, now, {}, t.says[1]}, knows, out);
  for (const auto& l : t[0].straggler_limit_over(knows)) out.push_back(l);
  CHECK(out.empty());
  (void)t[0].hear(seat_id{2}, promise{7, now, now, {}, t.says[2]}, knows, out);
  REQUIRE(out.size() == 2);
  CHECK(*std::get<accept>(out[0].what).value == "of three");
}
