#include "actors/cluster/view_rules.hpp"

#include "tests/actors/cluster/seats.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace poseidon;
using test::at_version;
using test::seats;
using outcome = next_membership::outcome;

namespace {

/// Members 0 to n-1, all at one version, each hearing all.
testimonies all_at(std::uint32_t n, std::uint64_t version, bool drained = false) {
  seat_list everybody;
  for (std::uint32_t s = 0; s < n; ++s) everybody.push_back(seat_id{s});
  testimonies out;
  for (const auto s : everybody) out[s] = {at_version(version, drained), everybody, {}};
  return out;
}
void cut(testimonies& t, std::uint32_t a, std::uint32_t b) {
  std::erase(t[seat_id{a}].hears, seat_id{b});
  std::erase(t[seat_id{b}].hears, seat_id{a});
}

}  // namespace

TEST_CASE("view_rules: more than half decide, or half with the oldest, and never fewer") {
  const auto three = seats({2, 5, 9}), four = seats({2, 5, 9, 11});
  CHECK(quorum(seats({5, 9}), three, {}));
  CHECK(!quorum(seats({2}), three, {}));
  CHECK(quorum(seats({2, 11}), four, {}));
  CHECK(!quorum(seats({5, 9}), four, {}));
  CHECK(quorum(seats({5, 9, 11}), four, {}));
  CHECK(quorum(seats({3}), seats({3}), {}));
  CHECK(!quorum({}, seats({3}), {}));
  CHECK(!quorum(seats({3}), {}, {}));
}

TEST_CASE("view_rules: the answer of a node that is no member does not count") {
  CHECK(!quorum(seats({1, 2, 7}), seats({1, 3, 5, 9}), {}));
  CHECK(!quorum(seats({2, 4}), seats({1, 3, 5}), {}));
}

TEST_CASE("view_rules: the younger of two goes on if the death of the older is proved") {
  CHECK(!quorum(seats({1}), seats({0, 1}), {}));
  CHECK(quorum(seats({1}), seats({0, 1}), seats({0})));
}

TEST_CASE("view_rules: with proofs all that are left have to answer, not a majority of them") {
  // Member 2 may have learnt a view that it made with 0.
  CHECK(!quorum(seats({1}), seats({0, 1, 2}), seats({0})));
  CHECK(quorum(seats({1, 2}), seats({0, 1, 2}), seats({0})));
  CHECK(quorum(seats({2, 3}), seats({0, 1, 2, 3}), seats({0, 1})));
  CHECK(!quorum(seats({2}), seats({0, 1, 2, 3}), seats({0, 1})));
  CHECK(!quorum({}, seats({0, 1}), seats({0, 1})));
}

TEST_CASE("view_rules: two sets that decide without proofs share a member") {
  for (std::uint32_t n = 1; n <= 6; ++n) {
    std::vector<seat_list> deciding;
    seat_list members;
    for (std::uint32_t s = 0; s < n; ++s) members.push_back(seat_id{s});
    for (std::uint32_t mask = 0; mask < 1u << n; ++mask) {
      seat_list some;
      for (std::uint32_t s = 0; s < n; ++s)
        if ((mask >> s & 1u) != 0) some.push_back(seat_id{s});
      if (quorum(some, members, {})) deciding.push_back(some);
    }
    REQUIRE(!deciding.empty());
    for (const auto& a : deciding)
      for (const auto& b : deciding) {
        const bool shared =
            std::any_of(a.begin(), a.end(), [&](seat_id s) { return has_seat(b, s); });
        if (!shared) FAIL_CHECK("two quorums of " << n << " members share none");
      }
  }
}

TEST_CASE("view_rules: of a pair that does not hear each other the younger goes") {
  auto t = all_at(3, 4);
  cut(t, 1, 2);
  CHECK(largest_hearing_set(t) == seats({0, 1}));
  CHECK(next_members(t, seats({0, 1, 2}), {}).members == seats({0, 1}));
}

TEST_CASE("view_rules: one that hears nobody does not speak for the one that it does not hear") {
  auto t = all_at(3, 4);
  t[seat_id{2}].hears = {};  // one-sided: 0 and 1 still hear it
  CHECK(largest_hearing_set(t) == seats({0, 1}));
}

TEST_CASE("view_rules: the oldest goes if more members hear each other without it") {
  auto t = all_at(5, 4);
  for (const auto other : {2, 3, 4}) cut(t, 0, static_cast<std::uint32_t>(other));
  CHECK(largest_hearing_set(t) == seats({1, 2, 3, 4}));
}

TEST_CASE("view_rules: who has promised and then died is no member of the next view") {
  auto t = all_at(3, 4);
  t[seat_id{1}].dead = seats({0});
  t[seat_id{1}].hears = seats({1, 2});  // 2 has not noticed yet
  const auto next = next_members(t, seats({0, 1, 2}), {});
  CHECK(next.is == outcome::decided);
  CHECK(next.members == seats({1, 2}));
}

TEST_CASE("view_rules: the next view begins at the least version that those who stay have whole") {
  auto t = all_at(3, 121);
  t[seat_id{1}].stand = at_version(120);
  const auto members = seats({0, 1, 2, 3});
  auto next = next_members(t, members, {});
  CHECK(next.members == seats({0, 1, 2}));
  CHECK(next.first == version_id{120});
  CHECK(!next.planned);

  SUBCASE("one that does not stay does not hold the others back") {
    cut(t, 0, 1);
    cut(t, 1, 2);
    CHECK(!quorum(seats({2}), members, {}));
    next = next_members(t, members, {});
    CHECK(next.members == seats({0, 2}));
    CHECK(next.first == version_id{121});
  }
  SUBCASE("a newcomer without values is given them, and does not count") {
    t[seat_id{1}].stand = {};
    CHECK(next_members(t, members, {}).first == version_id{121});
    CHECK(next_members(t, members, {}).members == seats({0, 1, 2}));
  }
  SUBCASE("without any version there is nothing to go back to") {
    for (auto& [seat, says] : t) says.stand = {};
    CHECK(next_members(t, members, {}).is == outcome::no_version);
    CHECK(next_members(t, members, {}).members.empty());
  }
}

TEST_CASE("view_rules: too few that hear each other make no view, however many promise") {
  auto t = all_at(5, 4);
  for (std::uint32_t a = 0; a < 5; ++a)
    for (std::uint32_t b = 0; b < a; ++b)
      if (a + b != 1) cut(t, a, b);
  CHECK(next_members(t, seats({0, 1, 2, 3, 4}), {}).is == outcome::no_quorum);
  CHECK(next_members({}, seats({0, 1}), {}).is == outcome::no_quorum);
}

TEST_CASE("view_rules: in a planned change leavers go and joiners come, at the drained clock") {
  const auto members = seats({0, 1, 2});
  const wishes wanted{seats({7, 8}), seats({0})};
  auto t = all_at(3, 40, true);
  const auto next = next_members(t, members, wanted);
  CHECK(next.planned);
  CHECK(next.members == seats({1, 2, 7, 8}));
  CHECK(next.first == version_id{40});

  SUBCASE("a member that is lost meanwhile makes it a loss: wishes wait") {
    t.erase(seat_id{2});
    const auto lost = next_members(t, members, wanted);
    CHECK(!lost.planned);
    CHECK(lost.members == seats({0, 1}));
  }
  SUBCASE("a member that has not drained makes it a loss, too") {
    t[seat_id{1}].stand = at_version(39);
    const auto early = next_members(t, members, wanted);
    CHECK(!early.planned);
    CHECK(early.members == members);
    CHECK(early.first == version_id{39});
  }
  SUBCASE("if all leave and nobody comes, the run ends") {
    CHECK(next_members(t, members, {{}, members}).is == outcome::all_leave);
    CHECK(next_members(t, members, {seats({7}), members}).members == seats({7}));
  }
}

TEST_CASE("view_rules: the oldest that is not suspected proposes at once, the others by rank") {
  const auto members = seats({1, 4, 6, 9});
  CHECK(proposer_rank(seat_id{1}, members, {}) == 0);
  CHECK(proposer_rank(seat_id{9}, members, {}) == 3);
  CHECK(proposer_rank(seat_id{4}, members, seats({1})) == 0);
  CHECK(proposer_rank(seat_id{9}, members, seats({1, 6})) == 1);
  CHECK(proposer_rank(seat_id{1}, members, seats({1})) == 0);  // whoever suspects it
  CHECK(!proposer_rank(seat_id{5}, members, {}));
}

TEST_CASE("view_rules: a witness counts in quorums, and is never the oldest") {
  const auto w = seats({1});
  CHECK(quorum(seats({1, 4}), seats({0, 1, 4}), {}, w));
  CHECK(!quorum(seats({1}), seats({0, 1, 4}), {}, w));
  // Of two the one that trains decides, whatever the seats are; of four the half with the oldest that trains.
  CHECK(quorum(seats({4}), seats({1, 4}), {}, w));
  CHECK(!quorum(seats({1}), seats({1, 4}), {}, w));
  CHECK(quorum(seats({4, 6}), seats({1, 4, 5, 6}), {}, w));
  CHECK(!quorum(seats({1, 6}), seats({1, 4, 5, 6}), {}, w));
  CHECK(!quorum(seats({1}), seats({1}), {}, w));
}

TEST_CASE("view_rules: of two sets those that train go on together, and the witness goes") {
  auto t = all_at(3, 5);
  t[seat_id{0}].stand = {std::nullopt, true};
  cut(t, 0, 2);  // the witness is 0, and hears 1 alone
  const auto next = next_members(t, seats({0, 1, 2}), {}, &quorum, seats({0}));
  CHECK(next.is == outcome::decided);
  CHECK(next.members == seats({1, 2}));
}

TEST_CASE("view_rules: a witness has no version, and waits always") {
  auto t = all_at(3, 5, true);
  t[seat_id{2}].stand = {std::nullopt, true};
  const auto w = seats({2}), members = seats({0, 1, 2});
  auto next = next_members(t, members, {seats({7}), seats({1})}, &quorum, w);
  CHECK(next.planned);
  CHECK(next.first == version_id{5});
  CHECK(next.members == seats({0, 2, 7}));
  CHECK(next_members(t, members, {{}, seats({0, 1})}, &quorum, w).is == outcome::all_leave);
  cut(t, 0, 1);
  cut(t, 0, 2);
  next = next_members(t, members, {}, &quorum, w);
  CHECK(next.members == seats({1, 2}));
  CHECK(next.first == version_id{5});
  CHECK(!next.planned);
}

TEST_CASE("view_rules: witnesses alone make no view") {
  testimonies t;
  t[seat_id{0}] = {{std::nullopt, true}, seats({0}), seats({1})};
  CHECK(next_members(t, seats({0, 1}), {}, &quorum, seats({0})).is == outcome::no_quorum);
}

TEST_CASE("view_rules: a witness never proposes, and nobody waits for its ballot") {
  CHECK(!proposer_rank(seat_id{0}, seats({0, 1, 2}), {}, seats({0})));
  CHECK(proposer_rank(seat_id{1}, seats({0, 1, 2}), {}, seats({0})) == 0u);
  CHECK(proposer_rank(seat_id{2}, seats({0, 1, 2}), {}, seats({0})) == 1u);
}
