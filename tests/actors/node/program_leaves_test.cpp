// Workers whose programs compute leave while the others train on, and others join and are killed meanwhile: a step that one has trained before
// it left counts, and none waits for one that has left. POSEIDON_LOSSES and POSEIDON_LOSSES_SEED as in program_losses_test.cpp.
#include "tests/actors/node/program_checks.hpp"
#include "tests/number_asked.hpp"

#include <algorithm>

using namespace poseidon;
using test::program_rig, test::check_the_end;

namespace {

struct events {
  bool joins = false, kills = false, factors = false;
};

/// Of two to five, one to three leave, all of them at times; others join and are killed between.
void leave(std::uint32_t seed, events may) {
  CAPTURE(seed);
  program_rig t(seed);
  t.offers_factors = may.factors;
  t.takes_newcomers = may.joins;
  t.clocks = 20;
  const std::size_t workers = 2 + t.random() % 4;
  CAPTURE(workers);
  t.cluster_of_programs(workers);
  t.train_some_clocks();
  for (auto left = 1 + t.random() % 4; left > 0; --left) {
    t.turns(t.random() % 300);
    const auto who = t.random() % t.nodes.size();
    const auto what = t.random() % 4;
    if (may.joins && what == 0) {
      t.one_joins();
    } else if (may.kills && what == 1) {
      if (t.killed.contains(who) || t.nodes[who]->result || t.killed.size() + 2 > t.nodes.size())
        continue;
      t.kill(who);
      if (t.random() % 2 == 0) t.sim.pass(std::chrono::milliseconds{20});
    } else {
      t.programs[who]->leave_soon();
    }
  }
  t.go_on_until_the_end();
  check_the_end(t);
}

void walk(events may) {
  const auto first = test::number_asked("POSEIDON_LOSSES_SEED", 1);
  const auto orders = test::number_asked("POSEIDON_LOSSES", 60);
  for (auto seed = first; seed < first + orders; ++seed) leave(seed, may);
}

}  // namespace

TEST_CASE("programs: the first one leaves, then another one, and the last one trains to its end") {
  program_rig t(1);
  t.clocks = 30;
  t.cluster_of_programs(3);
  t.train_some_clocks();
  t.programs[0]->leave_soon();
  while (!t.nodes[0]->result) {
    t.turns(1);
    if (!t.sim.step_any(t.random)) t.sim.pass(std::chrono::milliseconds{20});
  }
  CHECK(t.nodes[0]->display->said("left the run; the others go on"));
  CHECK(t.nodes[1]->display->said("has left"));
  t.programs[2]->leave_soon();
  t.go_on_until_the_end();
  check_the_end(t);
  CHECK(t.programs[1]->around->views.newest().seats == std::vector{seat_id{1}});
}

TEST_CASE("programs: all leave before the same clock, and the run ends") {
  program_rig t(1);
  t.clocks = 30;
  t.cluster_of_programs(3);
  for (auto& p : t.programs) p->leave_soon();
  t.go_on_until_the_end();
  check_the_end(t);
  CHECK(t.programs[0]->means().size() < 30);
}

TEST_CASE("programs: some leave, whenever that is") {
  walk({});
}

TEST_CASE("programs: some leave where a parameter goes as factors") {
  walk({.factors = true});
}

TEST_CASE("programs: some leave and others are killed") {
  walk({.kills = true});
}

TEST_CASE("programs: some leave and others join and are killed") {
  walk({.joins = true, .kills = true});
}
