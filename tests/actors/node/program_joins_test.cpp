// Workers whose programs compute join a run that trains, and are killed at every moment, as those that are there: whoever has joined has what
// the others have, and no clock is left out or made twice. POSEIDON_LOSSES and POSEIDON_LOSSES_SEED as in program_losses_test.cpp.
#include "tests/actors/node/program_checks.hpp"
#include "tests/number_asked.hpp"

#include <algorithm>

using namespace poseidon;
using test::program_rig, test::check_the_end;

namespace {

/// One to three join two or three that train, and perhaps one is killed, or two.
void join(std::uint32_t seed, bool factors) {
  CAPTURE(seed);
  program_rig t(seed);
  t.offers_factors = factors;
  t.takes_newcomers = true;
  t.clocks = 25;
  const std::size_t workers = 2 + t.random() % 2;
  CAPTURE(workers);
  t.cluster_of_programs(workers);
  t.train_some_clocks();
  for (auto events = 1 + t.random() % 4; events > 0; --events) {
    t.turns(t.random() % 300);
    if (t.random() % 2 == 0 || events == 1) {
      t.one_joins();
      continue;
    }
    const auto victim = t.random() % t.nodes.size();
    if (t.killed.contains(victim) || t.nodes[victim]->result ||
        t.killed.size() + 2 > t.nodes.size())
      continue;
    t.kill(victim);
    if (t.random() % 2 == 0) t.sim.pass(std::chrono::milliseconds{20});
  }
  t.go_on_until_the_end();
  check_the_end(t);
}

}  // namespace

TEST_CASE("programs: who joins a run that loses nobody has what the others have") {
  for (const bool factors : {false, true}) {
    CAPTURE(factors);
    program_rig t(1);
    t.offers_factors = factors;
    t.takes_newcomers = true;
    t.clocks = 40;
    t.cluster_of_programs(2);
    t.train_some_clocks();
    t.one_joins();
    t.turns(200);
    t.one_joins();
    t.go_on_until_the_end();
    check_the_end(t);
    for (const auto& p : t.programs) CHECK(p->has_begun());
    CHECK(t.programs[2]->first_clock() > 0);
    CHECK(t.programs[0]->around->views.newest().seats.size() == 4);
  }
}

TEST_CASE("programs: others join, and workers are killed, whenever that is") {
  const auto first = test::number_asked("POSEIDON_LOSSES_SEED", 1);
  const auto orders = test::number_asked("POSEIDON_LOSSES", 60);
  for (auto seed = first; seed < first + orders; ++seed) join(seed, false);
}

TEST_CASE("programs: others join where a parameter goes as factors") {
  const auto first = test::number_asked("POSEIDON_LOSSES_SEED", 1);
  const auto orders = test::number_asked("POSEIDON_LOSSES", 60);
  for (auto seed = first; seed < first + orders; ++seed) join(seed, true);
}
