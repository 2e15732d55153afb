#include "tests/actors/membership/view_search.hpp"
#include "tests/actors/membership/view_walk.hpp"
#include "tests/number_asked.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>

// In the environment: POSEIDON_VIEW_STATES=200000000 is the number of states after which the search of three nodes with two
// ballots in each epoch gives up (it has seen all before that, in minutes and 1.5 GB); POSEIDON_VIEW_WALKS=1000000 is
// the number of random schedules. A failing seed is printed, and POSEIDON_VIEW_SEED=N walks that one alone.

using namespace poseidon::view_model;
using poseidon::test::number_asked;

#ifdef __SANITIZE_ADDRESS__
constexpr std::uint64_t some_walks = 2000;  // each takes many times as long
#else
constexpr std::uint64_t some_walks = 10000;
#endif

namespace {

std::string told(const search_result& r) {
  std::string out = r.violated + " after " + std::to_string(r.states) + " states";
  for (const auto& line : r.trace) out += "\n  " + line;
  return out;
}

/// Prints what was searched, and requires that no invariant is broken.
search_result check_search(const search_limits& limits) {
  const auto r = search(limits, mutation::none);
  const std::string whether_all = r.complete ? "which are all" : "and there are more";
  MESSAGE(to_string(limits) << ": " << r.states << " states, " << whether_all);
  CAPTURE(told(r));
  CHECK(r.violated.empty());
  return r;
}

/// One crash, and one ballot in each of two epochs.
search_limits short_limits() {
  search_limits l;
  l.newest = 1;
  l.ballots = {0, 1, 1};
  return l;
}
/// No faults but posts that do not arrive, and two ballots in the first epoch.
search_limits two_proposers(std::uint8_t newest) {
  search_limits l;
  l.newest = newest;
  l.ballots = {0, 2, 0};
  l.crashes = l.doubts = 0;
  return l;
}

/// What the search finds first in a model that is broken: the name of an invariant and an epoch.
std::string search_finds(mutation broken, search_limits limits, const char* looks_for = "") {
  limits.looks_for = looks_for;
  limits.most_states = 200'000;
  return search(limits, broken).violated;
}

/// Whether one of 20,000 schedules violates something. `first`: a seed that did when this was written, to be quick.
bool walks_find(mutation broken, std::uint64_t first) {
  for (auto seed = first; seed < first + 20'000; ++seed)
    if (!walk(seed, broken).violated.empty()) return true;
  return false;
}

}  // namespace

TEST_CASE("view_model: all states of three nodes with one ballot in each epoch are sound") {
  CHECK(check_search(short_limits()).complete);
}

TEST_CASE("view_model: all states of two nodes and a witness are sound, whichever seat it has") {
  auto limits = short_limits();
  for (std::uint32_t seat = 0; seat < 3; ++seat) {
    limits.witnesses = bit(seat);
    CHECK(check_search(limits).complete);
  }
}

TEST_CASE("view_model: the states of two nodes and a witness with two ballots are sound") {
  search_limits full;
  full.witnesses = bit(2);
  full.most_states = number_asked("POSEIDON_VIEW_STATES", 50'000);
  const auto r = check_search(full);
  CHECK((r.complete || r.states > full.most_states));
}

TEST_CASE("view_model: the search finds a witness that forgets, and one that counts as version 0") {
  auto two = two_proposers(0);
  two.witnesses = bit(2);
  CHECK(search_finds(mutation::witness_forgets_promise, two, "Agree") == "Agree in epoch 2");
  auto one = short_limits();
  one.witnesses = bit(2);
  CHECK(search_finds(mutation::witness_has_first_version, one) == "NoTwo in epoch 2");
  // A witness does not hide what is broken elsewhere.
  CHECK(search_finds(mutation::minority_decides, two, "Agree") == "Agree in epoch 2");
  CHECK(search_finds(mutation::ignores_accepted, two, "Agree") == "Agree in epoch 2");
}

TEST_CASE("view_model: all states of a view of two nodes are sound") {
  search_limits two;
  two.members = 3;
  CHECK(check_search(two).complete);
}

TEST_CASE("view_model: the states of three nodes with two ballots in each epoch are sound") {
  search_limits full;
  full.most_states = number_asked("POSEIDON_VIEW_STATES", 50'000);
  const auto r = check_search(full);
  CHECK((r.complete || r.states > full.most_states));
}

TEST_CASE("view_model: what the search takes away because it cannot matter changes no outcome") {
  auto limits = short_limits();
  limits.newest = 0;
  SUBCASE("three nodes, without doubts") {
    limits.doubts = 0;
  }
  SUBCASE("a view of two, with two ballots that decide what follows it") {
    limits.members = 3;
    limits.ballots = {0, 2, 1};
  }
  limits.collects_fates = true;
  const auto reduced = search(limits, mutation::none);
  limits.takes_away = false;
  const auto plain = search(limits, mutation::none);
  CHECK((reduced.complete && plain.complete));
  CHECK(10 * reduced.states < plain.states);
  CHECK(reduced.fates == plain.fates);
}

TEST_CASE("view_model: the search finds each thing that is broken on purpose") {
  CHECK(search_finds(mutation::minority_decides, two_proposers(0), "Agree") == "Agree in epoch 2");
  CHECK(search_finds(mutation::ignores_accepted, two_proposers(0), "Agree") == "Agree in epoch 2");
  CHECK(search_finds(mutation::forgets_promise, two_proposers(0), "Agree") == "Agree in epoch 2");
  CHECK(search_finds(mutation::tells_after_freezing, two_proposers(1)) == "NoTwo in epoch 2");
  CHECK(search_finds(mutation::counts_older_epochs, short_limits()) == "Once in epoch 2");
  CHECK(search_finds(mutation::hears_older_ballots, short_limits()) == "Chain in epoch 3");
  CHECK(search_finds(mutation::returns_to_newest, short_limits(), "Back") == "Back in epoch 2");
  CHECK(search_finds(mutation::returns_to_newest, short_limits(), "Follow") == "Follow in epoch 2");
  CHECK(search_finds(mutation::answers_as_it_trains, short_limits()) == "NoTwo in epoch 2");
  CHECK(search_finds(mutation::follows_twice, short_limits()) == "Follow in epoch 3");

  auto two_versions = short_limits();
  two_versions.newest = 2;
  CHECK(search_finds(mutation::floor_ignores_youngest, two_versions) == "Floor in epoch 1");
}

TEST_CASE("view_model: the search finds two halves that go on where proofs shrink a majority") {
  auto with_a_crash = two_proposers(0);
  with_a_crash.crashes = 1;
  with_a_crash.doubts = 1;
  CHECK(search_finds(mutation::proofs_shrink_majority, with_a_crash, "Agree") ==
        "Agree in epoch 2");
}

TEST_CASE("view_model: the search finds that a proof of death needs the last words of the dead") {
  auto limits = short_limits();
  SUBCASE("in a view of two") {
    limits.members = 3;
    limits.ballots = {0, 2, 0};
    CHECK(search_finds(mutation::proves_without_farewell, limits) == "Agree in epoch 2");
  }
  SUBCASE("in a view of three, of which two are left in the next") {
    limits.newest = 0;
    limits.ballots = {0, 1, 2};
    CHECK(search_finds(mutation::proves_without_farewell, limits) == "Agree in epoch 3");
  }
}

namespace {

/// `with_a_witness`: one of the five is, another one in each schedule.
void check_walks(bool with_a_witness) {
  const auto one = number_asked("POSEIDON_VIEW_SEED", 0);
  const auto last = one != 0 ? one : number_asked("POSEIDON_VIEW_WALKS", some_walks);
  std::size_t joined = 0, left = 0, had_to_end = 0, further = 0, steps = 0;
  for (auto seed = one != 0 ? one : 1; seed <= last; ++seed) {
    const auto r = walk(seed, mutation::none, with_a_witness ? bit(seed % 5) : seat_mask{0});
    if (!r.violated.empty()) FAIL("seed " << seed << ": " << r.violated);
    joined += r.joined ? 1 : 0;
    left += r.left ? 1 : 0;
    had_to_end += r.had_to_end ? 1 : 0;
    further += r.epoch > 3 ? 1 : 0;
    steps += r.steps;
  }
  if (one != 0) return;
  MESSAGE(last << " schedules, " << steps << " steps; " << joined
               << " with a newcomer that joined, " << left << " with a member that left, "
               << further << " with three views or more, " << had_to_end
               << " that had to train again");
  // Walks in which nothing happens would find nothing.
  CHECK(joined + left > last / 100);
  CHECK(further > last / 100);
  CHECK(had_to_end > last / 2);
}

}  // namespace

TEST_CASE("view_model: random schedules of five nodes and two newcomers break no invariant") {
  check_walks(false);
}

TEST_CASE("view_model: nor do those of four nodes, a witness and two newcomers") {
  check_walks(true);
}

TEST_CASE("view_model: a cluster trains again where only its youngest member is frozen") {
  CHECK(walk(408807, mutation::none).violated == "");  // each rank has to have its turn
}

TEST_CASE("view_model: random schedules find what is broken on purpose") {
  // In the order of all_mutations. 0: only the search finds it. proves_without_farewell takes a view of two, a crash and a post that
  // is late, follows_twice a post that comes again after a promise.
  constexpr std::array<std::uint64_t, 13> seeds{4,   10204, 1354, 1,  2,   8029, 5,
                                                504, 4,     0,    16, 234, 0};
  static_assert(seeds.size() == all_mutations.size());
  for (std::size_t m = 0; m < seeds.size(); ++m) {
    CAPTURE(to_string(all_mutations[m]));
    if (seeds[m] != 0) CHECK(walks_find(all_mutations[m], seeds[m]));
  }
  // A witness that forgets takes two ballots that meet in it alone, which only the search finds.
  CHECK(!walk(45, mutation::witness_has_first_version, bit(0)).violated.empty());
}
