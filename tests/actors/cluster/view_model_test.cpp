#include "tests/actors/cluster/view_search.hpp"
#include "tests/actors/cluster/view_walk.hpp"
#include "tests/number_asked.hpp"

#include <doctest/doctest.h>

#include <string>

// POSEIDON_VIEW_WALKS=1000000 in the environment is the number of random schedules; a failing seed is printed, and
// POSEIDON_VIEW_SEED=N walks that one alone.

using namespace poseidon::view_model;
using poseidon::test::number_asked;

namespace {

std::string told(const search_result& r) {
  std::string out = r.violated + " after " + std::to_string(r.states) + " states";
  for (const auto& line : r.trace) out += "\n  " + line;
  return out;
}

/// The first seed that violates something; 0: none of the first `most`.
std::uint64_t seed_that_finds(mutation broken, std::uint64_t most) {
  for (std::uint64_t seed = 1; seed <= most; ++seed)
    if (!walk(seed, broken).violated.empty()) return seed;
  return 0;
}

}  // namespace

TEST_CASE(
    "view_model: the first 200,000 states of three nodes with all faults break no invariant") {
  search_limits few;
  few.most_states = 200'000;
  const auto r = search(few, mutation::none);
  CAPTURE(told(r));
  CHECK(r.violated.empty());
}

TEST_CASE("view_model: what is broken near the beginning is found by the search") {
  search_limits few;
  few.most_states = 200'000;
  for (const auto broken : {mutation::minority_decides, mutation::counts_older_epochs,
                            mutation::floor_ignores_youngest, mutation::proofs_shrink_majority}) {
    CAPTURE(to_string(broken));
    CHECK(!search(few, broken).violated.empty());
  }
}

TEST_CASE("view_model: random schedules of five nodes and two newcomers break no invariant") {
  const auto one = number_asked("POSEIDON_VIEW_SEED", 0);
  const auto last = one != 0 ? one : number_asked("POSEIDON_VIEW_WALKS", 10000);
  std::size_t joined = 0, left = 0, had_to_end = 0, further = 0;
  for (auto seed = one != 0 ? one : 1; seed <= last; ++seed) {
    const auto r = walk(seed, mutation::none);
    if (!r.violated.empty()) FAIL("seed " << seed << ": " << r.violated);
    joined += r.joined ? 1 : 0;
    left += r.left ? 1 : 0;
    had_to_end += r.had_to_end ? 1 : 0;
    further += r.epoch > 3 ? 1 : 0;
  }
  if (one != 0) return;
  // Walks in which nothing happens would find nothing.
  CHECK(joined + left > last / 100);
  CHECK(further > last / 100);
  CHECK(had_to_end > last / 2);
}

TEST_CASE("view_model: a cluster trains again where only its youngest member is frozen") {
  CHECK(walk(408807, mutation::none).violated == "");  // each rank has to have its turn
}

TEST_CASE("view_model: each thing that is broken on purpose is found by random schedules") {
  for (const auto broken : all_mutations) {
    if (broken == mutation::proves_without_farewell) continue;  // it takes a view of two nodes
    CAPTURE(to_string(broken));
    CHECK(seed_that_finds(broken, 20000) > 0);
  }
}
