// Workers whose programs compute are killed at every moment: the others go on, make no step twice and leave none out, and whoever has
// made a step has made it with the mean that all others have. POSEIDON_LOSSES: in how many orders, from the seed POSEIDON_LOSSES_SEED on.
#include "tests/actors/node/program_rig.hpp"
#include "tests/number_asked.hpp"

#include <algorithm>
#include <set>

using namespace poseidon;
using test::program_rig, test::sim_program;

namespace {

/// Whose gradients a mean is made of, by the numbers of the workers.
std::set<std::size_t> makers_of(float mean, std::uint64_t clock, std::size_t workers) {
  const auto sum = static_cast<std::uint64_t>(mean * static_cast<float>(workers)) / (1 + clock % 5);
  std::set<std::size_t> out;
  for (std::size_t n = 0; n < 32; ++n)
    if ((sum >> n & 1) != 0) out.insert(n);
  return out;
}

/// The workers whose gradients the means of a clock are to be made of.
std::set<std::size_t> members_at(const std::vector<program_view>& views, std::uint64_t clock) {
  std::set<std::size_t> out;
  for (const auto& v : views)
    if (v.first_clock <= clock) {
      out.clear();
      for (const auto s : v.seats) out.insert(value(s));
    }
  return out;
}

void check_means_of(const sim_program& of) {
  const auto views = of.around->views.all();
  for (std::uint64_t clock = 0; clock < of.means().size(); ++clock) {
    CAPTURE(clock);
    const auto members = members_at(views, clock);
    const auto& means = of.means()[clock];
    for (std::size_t p = 0; p < sim_program::parameters; ++p) {
      CAPTURE(p);
      if (p == sim_program::rarely && clock % 3 == 1) {
        CHECK(means[p].empty());
        continue;
      }
      // What the first of them gives may have been lost with it: then nobody has it in this clock.
      if (p == sim_program::given && means[p].empty()) continue;
      REQUIRE(!means[p].empty());
      CAPTURE(means[p].front());
      CHECK(std::all_of(means[p].begin(), means[p].end(),
                        [&](float v) { return v == means[p].front(); }));
      const bool is_given = p == sim_program::given;
      const auto makers = makers_of(means[p].front(), clock, is_given ? 1 : members.size());
      CHECK(makers == (is_given ? std::set{*members.begin()} : members));
    }
  }
}

void check_the_end(const program_rig& t) {
  auto ends = t.ends();
  for (const auto& p : t.programs) ends += "\n" + p->state();
  CAPTURE(ends);
  const sim_program* first = nullptr;
  for (std::size_t n = 0; n < t.nodes.size(); ++n) {
    CAPTURE(n);
    CHECK(!t.nodes[n]->display->said("sent a bad frame"));
    if (t.killed.contains(n)) continue;
    REQUIRE(t.nodes[n]->result);
    CHECK(t.nodes[n]->error() == "");
    CHECK(t.nodes[n]->exit_code() == 0);
    const auto& program = *t.programs[n];
    CHECK(program.means().size() == t.clocks);
    check_means_of(program);
    if (first == nullptr) first = &program;
    CHECK(program.means() == first->means());
  }
  REQUIRE(first != nullptr);
}

/// One worker of two to five is killed after so many turns; with more than three, perhaps another one.
void lose(std::uint32_t seed, bool factors) {
  CAPTURE(seed);
  program_rig t(seed);
  t.offers_factors = factors;
  t.clocks = 12;
  const std::size_t workers = 2 + t.random() % 4;
  CAPTURE(workers);
  t.cluster_of_programs(workers);
  while (std::any_of(t.programs.begin(), t.programs.end(),
                     [](const auto& p) { return p->means().size() < 2; })) {
    t.turns(1);
    if (!t.sim.step_any(t.random)) t.sim.pass(std::chrono::milliseconds{20});
  }
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
