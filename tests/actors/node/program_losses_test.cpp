// Workers whose programs compute are killed at every moment: the others go on, make no step twice and leave none out, and whoever has
// made a step has made it with the mean that all others have. POSEIDON_LOSSES: in how many orders, from the seed POSEIDON_LOSSES_SEED on.
#include "tests/actors/node/program_checks.hpp"
#include "tests/number_asked.hpp"

using namespace poseidon;
using test::program_rig, test::check_the_end;

namespace {

/// One worker of two to five is killed after so many turns; with more than three, perhaps another one.
void lose(std::uint32_t seed, bool factors) {
  CAPTURE(seed);
  program_rig t(seed);
  t.offers_factors = factors;
  t.clocks = 12;
  const std::size_t workers = 2 + t.random() % 4;
  CAPTURE(workers);
  t.cluster_of_programs(workers);
  t.train_some_clocks();
  for (std::size_t kills = workers > 3 ? 1 + t.random() % 2 : 1; kills > 0; --kills) {
    t.turns(t.random() % 400);
    const auto victim = t.random() % workers;
    if (t.killed.contains(victim) || t.nodes[victim]->result) continue;
    t.kill(victim);
    if (t.random() % 2 == 0) t.sim.pass(std::chrono::milliseconds{20});
  }
  t.go_on_until_the_end();
  check_the_end(t);
}

}  // namespace

TEST_CASE("programs: a run that loses nobody") {
  for (const bool factors : {false, true}) {
    CAPTURE(factors);
    program_rig t(1);
    t.offers_factors = factors;
    t.clocks = 12;
    t.cluster_of_programs(3);
    t.go_on_until_the_end();
    check_the_end(t);
  }
}

TEST_CASE("programs: the others go on without workers that are killed, whenever that is") {
  const auto first = test::number_asked("POSEIDON_LOSSES_SEED", 1);
  const auto orders = test::number_asked("POSEIDON_LOSSES", 60);
  for (auto seed = first; seed < first + orders; ++seed) lose(seed, false);
}

TEST_CASE("programs: the same where a parameter goes as factors") {
  const auto first = test::number_asked("POSEIDON_LOSSES_SEED", 1);
  const auto orders = test::number_asked("POSEIDON_LOSSES", 60);
  for (auto seed = first; seed < first + orders; ++seed) lose(seed, true);
}
