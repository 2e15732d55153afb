#include "actors/membership/next_members.hpp"

#include "tests/actors/membership/seats.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace poseidon;
using test::at_version;
using test::seats;

namespace {

/// Members 0 to n-1 of a run in which a loss ends nothing: all at one version, each hearing all, and one has been lost at some time.
membership_facts all_at(std::uint32_t n, std::uint64_t version, bool drained = false) {
  membership_facts f;
  for (std::uint32_t s = 0; s < n; ++s) f.members.push_back(seat_id{s});
  for (const auto s : f.members) f.said[s] = {at_version(version, drained), f.members, {}};
  f.survive = 1;
  f.disturbed = true;
  return f;
}
void cut(membership_facts& f, std::uint32_t a, std::uint32_t b) {
  std::erase(f.said[seat_id{a}].hears, seat_id{b});
  std::erase(f.said[seat_id{b}].hears, seat_id{a});
}
obstacle why(const membership_facts& f) {
  return next_members(f).why;
}

}  // namespace

TEST_CASE("next_members: of a pair that does not hear each other the younger goes") {
  auto f = all_at(3, 4);
  cut(f, 1, 2);
  CHECK(next_members(f).members == seats({0, 1}));
}

TEST_CASE("next_members: who has promised and then died is no member of the next view") {
  auto f = all_at(3, 4);
  f.said[seat_id{1}].dead = seats({0});
  f.said[seat_id{1}].hears = seats({1, 2});  // 2 has not noticed yet
  CHECK(next_members(f).members == seats({1, 2}));
}

TEST_CASE("next_members: the view begins at the least version that those who stay have whole") {
  auto f = all_at(3, 121);
  f.members = seats({0, 1, 2, 3});
  f.said[seat_id{1}].stand = at_version(120);
  CHECK(next_members(f).members == seats({0, 1, 2}));
  CHECK(next_members(f).first == version_id{120});
  CHECK(!next_members(f).as_planned);

  SUBCASE("one that does not stay does not hold the others back") {
    cut(f, 0, 1);
    cut(f, 1, 2);
    CHECK(next_members(f).members == seats({0, 2}));
    CHECK(next_members(f).first == version_id{121});
  }
  SUBCASE("a newcomer without values is given them, and does not count") {
    f.said[seat_id{1}].stand = {};
    f.brought = seats({1});
    CHECK(next_members(f).first == version_id{121});
    CHECK(next_members(f).members == seats({0, 1, 2}));
  }
}

TEST_CASE("next_members: of two sets those that train go on together, and the witness goes") {
  auto f = all_at(3, 5);
  f.witnesses = seats({0});
  f.said[seat_id{0}].stand = {std::nullopt, true};
  cut(f, 0, 2);  // the witness hears 1 alone
  CHECK(next_members(f).members == seats({1, 2}));
}

TEST_CASE("next_members: what the leader has planned holds when all have drained for it") {
  auto f = all_at(3, 40, true);
  f.planned = seats({1, 2, 7, 8});  // 0 leaves, 7 and 8 come
  CHECK(next_members(f).as_planned);
  SUBCASE("also if who is lost meanwhile was to leave") {
    f.said.erase(seat_id{0});
    CHECK(next_members(f).as_planned);
  }
  SUBCASE("not if who is lost was to stay: the plan waits") {
    f.said.erase(seat_id{2});
    CHECK(!next_members(f).as_planned);
    CHECK(next_members(f).members == seats({0, 1}));
  }
  SUBCASE("nor if one has not drained") {
    f.said[seat_id{1}].stand = at_version(39);
    CHECK(next_members(f).members == f.members);
    CHECK(next_members(f).first == version_id{39});
  }
  SUBCASE("nor if those that stay are too few to decide") {
    f = all_at(5, 40, true);
    f.planned = seats({3, 4});
    for (const auto s : {0, 1, 2}) f.said.erase(seat_id{static_cast<std::uint32_t>(s)});
    CHECK(why(f) == obstacle::too_few_hear_each_other);
  }
  SUBCASE("where a loss ends the run the plan is all there is") {
    f.survive = 0;
    f.said.erase(seat_id{2});
    CHECK(next_members(f).as_planned);
  }
  SUBCASE("a witness waits always, and has no version") {
    f.witnesses = seats({2});
    f.said[seat_id{2}].stand = {std::nullopt, true};
    CHECK(next_members(f).as_planned);
    f.planned.reset();
    CHECK(next_members(f).first == version_id{40});
  }
}

TEST_CASE("next_members: in iteration 0 who has no values stays only with one that gives them") {
  auto f = all_at(3, 0);
  f.members = seats({0, 1, 2, 3});
  f.brought = seats({1, 2, 3});
  f.said[seat_id{2}].stand = {};
  CHECK(next_members(f).members == seats({0, 1, 2}));
  f.said.erase(seat_id{0});
  f.said[seat_id{3}] = f.said[seat_id{1}];
  for (auto& [seat, says] : f.said) says.hears = seats({1, 2, 3});
  CHECK(next_members(f).members == seats({1, 3}));
}

// -- the rules, each with what it forbids and the least that makes it content ---------------------------------

TEST_CASE("next_members: every rule forbids something, and something else does not forbid that") {
  auto f = all_at(3, 5);
  auto forbids = obstacle::none;
  SUBCASE("where no copies are kept, nobody but the leader proposes") {
    f.survive = 0;
    forbids = obstacle::losses_end_the_run;
  }
  SUBCASE("all have drained, and nobody was lost") {
    for (auto& [seat, says] : f.said) says.stand.drained = true;
    f.disturbed = false;
    forbids = obstacle::leader_is_to_propose;
  }
  SUBCASE("this node has slept") {
    f.waits_for_word = true;
    forbids = obstacle::word_is_awaited;
  }
  SUBCASE("two of five hear each other") {
    f.members = seats({0, 1, 2, 3, 4});
    cut(f, 0, 2);
    cut(f, 1, 2);
    forbids = obstacle::too_few_hear_each_other;
  }
  SUBCASE("nobody has any version") {
    for (auto& [seat, says] : f.said) says.stand.whole.reset();
    f.brought = f.members;
    forbids = obstacle::nobody_has_a_version;
  }
  SUBCASE("an old member says that it has no values") {
    f.said[seat_id{1}].stand.whole.reset();
    forbids = obstacle::values_would_be_needed_again;
  }
  SUBCASE("a lost one may live, and its state is nowhere else") {
    f.members = seats({0, 1, 2, 3});
    f.has_all_state = [](const seat_list&, version_id) { return false; };
    forbids = obstacle::lost_ones_may_have_the_state;
  }
  REQUIRE(forbids != obstacle::none);
  CHECK(why(f) == forbids);
  CHECK(next_members(f).members.empty());
  CHECK(next_members(f, forbids).is_decided());
}

TEST_CASE("next_members: witnesses alone make no view") {
  membership_facts f;
  f.members = seats({0, 1});
  f.witnesses = seats({0});
  f.survive = 1;
  f.disturbed = true;
  f.said[seat_id{0}] = {{std::nullopt, true}, seats({0}), seats({1})};
  CHECK(why(f) == obstacle::too_few_hear_each_other);
  // Nor does a member that could not be given values, which a witness hears.
  f.said[seat_id{1}] = {{}, seats({0, 1}), {}};
  f.said[seat_id{0}] = {{std::nullopt, true}, seats({0, 1}), {}};
  CHECK(why(f) == obstacle::nobody_has_a_version);
}

TEST_CASE("next_members: those that are proved dead have no state that anybody waits for") {
  auto f = all_at(2, 5);
  f.members = seats({0, 1, 2});
  f.has_all_state = [](const seat_list&, version_id) { return false; };
  CHECK(why(f) == obstacle::lost_ones_may_have_the_state);
  f.said[seat_id{1}].dead = seats({2});
  CHECK(next_members(f).members == seats({0, 1}));
}

TEST_CASE("next_members: each obstacle has one rule, which is one sentence") {
  const auto rules = membership_rules();
  for (const auto& r : rules) {
    CHECK(r.says.ends_with('.'));
    CHECK(std::count_if(rules.begin(), rules.end(),
                        [&](const auto& other) { return other.why == r.why; }) == 1);
  }
  CHECK(rules.size() == static_cast<std::size_t>(obstacle::lost_ones_may_have_the_state));
}
