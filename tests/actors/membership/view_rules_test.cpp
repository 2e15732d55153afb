#include "actors/membership/view_rules.hpp"

#include "tests/actors/membership/seats.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace poseidon;
using test::at_version;
using test::seats;

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

TEST_CASE("view_rules: a witness never proposes, and nobody waits for its ballot") {
  CHECK(!proposer_rank(seat_id{0}, seats({0, 1, 2}), {}, seats({0})));
  CHECK(proposer_rank(seat_id{1}, seats({0, 1, 2}), {}, seats({0})) == 0u);
  CHECK(proposer_rank(seat_id{2}, seats({0, 1, 2}), {}, seats({0})) == 1u);
}
