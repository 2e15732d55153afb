// Nodes are killed in whatever order they get their turns, while others join and leave: all others end in order, and no bit is lost.
// POSEIDON_LOSSES: in how many orders, from the seed POSEIDON_LOSSES_SEED on.
#include "tests/actors/node/resumed_run.hpp"
#include "tests/number_asked.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

using namespace poseidon;
using test::node_rig;

namespace {

/// Nodes that were told to leave.
using leaver_set = std::set<std::size_t>;

constexpr const char* snapshots = "snapshot: 1 ";

void train_anyhow(node_rig& t, std::mt19937& random, bool writes_snapshots) {
  t.clocks = 30;
  if (writes_snapshots) t.more_solver = snapshots;
  if (random() % 2 == 0) t.more_solver += "poseidon { staleness: 1 } ";
  if (random() % 2 == 0)
    t.routes = {route_option::kind::listed, "test", {{"ip1", route::factor_broadcast, 0, 0}}};
}

/// The views that have begun, as far as any node has told its user.
std::vector<progress::view> views_of_all(const node_rig& t) {
  std::map<std::uint64_t, progress::view> by_epoch;
  for (const auto& n : t.nodes)
    for (const auto& v : n->display->views) by_epoch.emplace(v.epoch, v);
  std::vector<progress::view> out;
  for (const auto& [epoch, v] : by_epoch) out.push_back(v);
  return out;
}

/// Only newcomers without values are left, or one that leaves; or, in iteration 0, one that had not got the first values yet.
bool nobody_can_go_on(const std::string& error) {
  for (const char* why : {"all other nodes are lost, and this one, which has just joined",
                          "all nodes that had trained before iteration ",
                          "the first node is lost before all others had the values",
                          "all other nodes are lost, and this one was leaving"})
    if (error.find(why) != std::string::npos) return true;
  return false;
}

/// Each snapshot that any node has said to be written, also one that was written again later, is of the run.
void check_all_snapshots(const node_rig& t, const test::chain& right) {
  std::size_t files = 0;
  for (const auto& n : t.nodes)
    for (const auto& [version, bytes] : n->display->written) {
      CAPTURE(version);
      CHECK(bytes == right.weights(version));
      ++files;
    }
  CHECK(files > t.clocks / 2);
}

/// All that were not killed have ended in order, with what a chain of undisturbed runs trains. `anybody`: newcomers are killed, too,
/// and any number of members: then only newcomers may be left, or nobody.
void check_the_end(const node_rig& t, std::size_t members, const leaver_set& leavers,
                   bool anybody) {
  const auto ends = t.ends();
  CAPTURE(ends);
  bool all_older_are_killed = true;
  for (std::size_t n = 0; n < members; ++n)
    all_older_are_killed = all_older_are_killed && t.killed.contains(n);
  bool has_weights = false, has_survivor = false, ended_early = false, has_zeros = false;
  for (std::size_t n = 0; n < t.nodes.size(); ++n) {
    CAPTURE(n);
    // A lone node that is told to leave ends the run.
    ended_early = ended_early || t.nodes[n]->display->said("ending after iteration ");
    CHECK(!t.nodes[n]->display->said("sent a bad frame"));
    has_zeros = has_zeros || t.nodes[n]->display->said(" begins with zeros in iteration ");
    if (t.killed.contains(n)) continue;
    const auto& it = *t.nodes[n];
    // Newcomers alone, of which one does not know whether another one lives: somebody has to tell it.
    if (anybody && all_older_are_killed && it.display->said("paused: ")) return;
    REQUIRE(it.result);
    // Two neighbours at the same time are more than it survives; so is one that leaves and one that is lost.
    if (it.error().find("solver state is gone with") != std::string::npos) {
      CHECK(!t.zeroes_lost_state);
      return;
    }
    if (anybody && nobody_can_go_on(it.error())) return;
    // One leaves, all others with values are lost, and who has just joined has none: the one that leaves keeps what there is.
    const bool is_the_last = leavers.contains(n) && it.error().ends_with(". It was told to end");
    if (anybody && is_the_last) return;
    if (n >= members && !t.has_joined(n)) continue;  // the run has ended before it was a member
    CHECK(it.error() == "");
    const bool has_left = leavers.contains(n) && it.exit_code() == 143;
    if (!has_left) CHECK(it.exit_code() == 0);
    has_weights = has_weights || !has_left;
    has_survivor = has_survivor || (!has_left && n < members);
  }
  if (!anybody) {
    REQUIRE(has_survivor);
    CHECK(!ended_early);
  }
  const bool writes = t.more_solver == snapshots;
  if (!has_weights || ended_early || has_zeros || !(writes || t.more_solver.empty())) return;
  const test::chain right(t, views_of_all(t));
  CHECK(t.weights(t.clocks) == right.weights(t.clocks));
  if (writes) check_all_snapshots(t, right);
}

/// Of the members that a run begins with.
std::vector<std::string> hosts_of(std::size_t members) {
  std::vector<std::string> hosts;
  for (std::size_t n = 0; n < members; ++n) hosts.emplace_back(1, static_cast<char>('a' + n));
  return hosts;
}

void maybe_wait(node_rig& t, std::mt19937& random) {
  if (random() % 2 == 0) t.sim.pass(std::chrono::milliseconds{random() % 2 == 0 ? 20 : 250});
}

/// A run in the random order of this seed, in which up to two members are killed. `others_move`: a node joins as well, and a member leaves.
void lose_in_any_order(std::uint32_t seed, bool others_move) {
  CAPTURE(seed);
  std::mt19937 random(seed);
  node_rig t;
  t.survive = 1;
  train_anyhow(t, random, seed % 2 == 0);
  const std::size_t members = 3 + random() % 3;
  CAPTURE(members);
  t.cluster(members);
  REQUIRE(t.until_clock(2));
  leaver_set leavers;
  const int joins_at = others_move ? static_cast<int>(random() % 3) : 2;
  const int leaves_at = others_move ? static_cast<int>(random() % 3) : 2;
  CAPTURE(joins_at);
  CAPTURE(leaves_at);
  for (int kills = 0; kills < 2; ++kills) {
    t.some_turns(random, 600);
    if (kills == joins_at) t.joiner("x", {"a", "b", "c"});
    if (kills == leaves_at) {
      const auto leaver = random() % members;
      leavers.insert(leaver);
      if (!t.killed.contains(leaver) && !t.nodes[leaver]->result)
        t.sim.tell(t.nodes[leaver]->it, interrupted{15, false, true});
      if (random() % 2 == 0) t.sim.pass(std::chrono::milliseconds{200});
    }
    if (others_move) t.some_turns(random, 150);
    const auto victim = random() % members;
    if (t.killed.contains(victim) || t.nodes[victim]->result) continue;
    if (2 * (t.killed.size() + 1) >= members) continue;
    t.kill(victim);
    if (random() % 2 == 0) t.sim.pass(std::chrono::milliseconds{20});
  }
  t.go_on_anyhow(random);
  check_the_end(t, members, leavers, false);
}

/// Whoever it is may be killed, newcomers too, at any moment, and may leave.
void lose_anybody(std::uint32_t seed, bool writes_snapshots, bool zeroes_lost_state = false,
                  bool lines_stall = false) {
  CAPTURE(seed);
  std::mt19937 random(seed);
  node_rig t;
  t.shows = lines_stall;
  t.survive = 1 + random() % 2;
  t.zeroes_lost_state = zeroes_lost_state;
  train_anyhow(t, random, writes_snapshots);
  const std::size_t members = 2 + random() % 3;
  CAPTURE(members);
  t.cluster(members);
  REQUIRE(t.until_clock(2));
  if (lines_stall) t.stall_lines(seed);
  leaver_set leavers;
  std::string events;
  const auto hosts = hosts_of(members);
  for (auto left = 3 + random() % 4; left > 0; --left) {
    t.some_turns(random, random() % 2 == 0 ? 600 : 60);
    const auto who = random() % t.nodes.size();
    const bool lives = !t.killed.contains(who) && !t.nodes[who]->result;
    switch (random() % 4) {
      case 0:
        if (t.nodes.size() >= members + 3) break;
        events += " join " + std::to_string(t.nodes.size());
        t.joiner(std::string(1, static_cast<char>('x' + t.nodes.size() - members)), hosts);
        break;
      case 1:
        if (!lives || leavers.contains(who)) break;
        events += " leave " + std::to_string(who);
        leavers.insert(who);
        t.sim.tell(t.nodes[who]->it, interrupted{15, false, true});
        break;
      default:
        if (!lives) break;
        events += " kill " + std::to_string(who);
        t.kill(who);
    }
    maybe_wait(t, random);
  }
  CAPTURE(events);
  t.go_on_anyhow(random);
  check_the_end(t, members, leavers, true);
}

/// --views and a file of routes, with more newcomers than are wanted, some of which, or members, are killed.
void lose_by_schedule(std::uint32_t seed) {
  CAPTURE(seed);
  std::mt19937 random(seed);
  node_rig t;
  t.survive = 1;
  t.clocks = 24;
  std::string plan;
  for (std::uint64_t clock = 4; clock < 22; clock += 4 + random() % 5) {
    t.views[clock] = 1 + random() % 4;
    plan += " " + std::to_string(clock) + ":" + std::to_string(t.views[clock]);
  }
  CAPTURE(plan);
  t.routes = {route_option::kind::listed, "test", {}};
  bool factors = true;
  for (std::uint64_t clock = 1; clock < t.clocks; clock += 1 + random() % 4, factors = !factors)
    t.routes.entries.push_back(
        {"ip1", factors ? route::factor_broadcast : route::parameter_server, clock, 0});
  const std::size_t members = 2 + random() % 3;
  CAPTURE(members);
  t.cluster(members);
  REQUIRE(t.until_clock(1));
  const std::vector<std::string> hosts{"a", "b"};
  for (int n = 0; n < 16; ++n) t.joiner("h" + std::to_string(n), hosts);
  std::string kills;
  for (int n = 0; n < 2; ++n) {
    t.some_turns(random, 1500);
    const auto who = random() % t.nodes.size();
    if (t.killed.contains(who) || t.nodes[who]->result) continue;
    kills += " " + std::to_string(who);
    t.kill(who);
    maybe_wait(t, random);
  }
  CAPTURE(kills);
  t.go_on_anyhow(random);
  const auto ends = t.ends();
  CAPTURE(ends);
  // The only member of a view that had been decided was killed: somebody has to say so.
  for (std::size_t n = 1; t.killed.contains(0) && n < t.nodes.size(); ++n)
    if (!t.killed.contains(n) && t.nodes[n]->display->said("paused: ")) return;
  for (std::size_t n = 0; n < t.nodes.size(); ++n) {
    CAPTURE(n);
    CHECK(!t.nodes[n]->display->said("sent a bad frame"));
    if (t.killed.contains(n)) continue;
    REQUIRE(t.nodes[n]->result);
    const auto error = t.nodes[n]->error();
    if (nobody_can_go_on(error) || error.find("solver state is gone with") == 0) return;
    if (n >= members && !t.has_joined(n)) continue;
    CHECK(error == "");
    CHECK(t.nodes[n]->exit_code() == 0);
  }
  // Other routes bring nobody, as long as the first node leads, which knows the schedule.
  for (const auto& v : t.nodes[0]->display->views)
    if (v.first_clock < t.views.begin()->first) CHECK(v.seats.size() <= members);
}

/// Somebody's user ends the run (SIGINT) while others are killed, join and leave.
void end_while_nodes_are_lost(std::uint32_t seed) {
  CAPTURE(seed);
  std::mt19937 random(seed);
  node_rig t;
  t.survive = 1 + random() % 2;
  train_anyhow(t, random, false);
  t.clocks = 600;
  const std::size_t members = 2 + random() % 3;
  CAPTURE(members);
  t.cluster(members);
  REQUIRE(t.until_clock(2));
  std::string events;
  const auto hosts = hosts_of(members);
  const auto steps = 2 + random() % 4, ends_at = random() % steps;
  std::size_t ender = ~std::size_t{0};
  for (std::size_t step = 0; step < steps; ++step) {
    t.some_turns(random, random() % 2 == 0 ? 600 : 60);
    if (step == ends_at) {
      ender = random() % members;
      while (t.killed.contains(ender) || t.nodes[ender]->result)
        if (++ender == members) return;  // nobody is left
      events += " end " + std::to_string(ender);
      t.sim.tell(t.nodes[ender]->it, interrupted{2, false, false});
      continue;
    }
    const auto who = random() % t.nodes.size();
    const bool lives = who != ender && !t.killed.contains(who) && !t.nodes[who]->result;
    switch (random() % 4) {
      case 0:
        events += " join";
        t.joiner(std::string(1, static_cast<char>('x' + t.nodes.size() - members)), hosts);
        break;
      case 1:
        if (!lives) break;
        events += " leave " + std::to_string(who);
        t.sim.tell(t.nodes[who]->it, interrupted{15, false, true});
        break;
      default:
        if (!lives) break;
        events += " kill " + std::to_string(who);
        t.kill(who);
    }
    maybe_wait(t, random);
  }
  CAPTURE(events);
  t.go_on_anyhow(random);
  const auto ends = t.ends();
  CAPTURE(ends);
  for (std::size_t n = 0; n < t.nodes.size(); ++n) {
    CAPTURE(n);
    CHECK(!t.nodes[n]->display->said("sent a bad frame"));
    if (!t.killed.contains(n)) REQUIRE(t.nodes[n]->result);
  }
  CHECK(t.nodes[ender]->exit_code() != 0);  // it has not trained on to the end
}

}  // namespace

TEST_CASE("node: in whatever order nodes get their turns, members are killed, and no bit is lost") {
  const auto seeds = test::number_asked("POSEIDON_LOSSES", 40);
  for (std::uint32_t seed = 1; seed <= seeds; ++seed) lose_in_any_order(seed, false);
}

TEST_CASE("node: members are killed while another one joins and one leaves, and no bit is lost") {
  const auto seeds = test::number_asked("POSEIDON_LOSSES", 40);
  const auto first = test::number_asked("POSEIDON_LOSSES_SEED", 1);
  for (auto seed = first; seed < first + seeds; ++seed)
    lose_in_any_order(static_cast<std::uint32_t>(seed), true);
}

TEST_CASE("node: newcomers, too, are killed and leave at any moment, and no bit is lost") {
  const auto seeds = test::number_asked("POSEIDON_LOSSES", 120);
  const auto first = test::number_asked("POSEIDON_LOSSES_SEED", 1);
  for (auto seed = first; seed < first + seeds; ++seed)
    lose_anybody(static_cast<std::uint32_t>(seed), seed % 2 == 0);
}

TEST_CASE("node: with --lost-state zero nobody ends because state is gone, in whatever order") {
  const auto seeds = test::number_asked("POSEIDON_LOSSES", 60);
  const auto first = test::number_asked("POSEIDON_LOSSES_SEED", 1);
  for (auto seed = first; seed < first + seeds; ++seed)
    lose_anybody(static_cast<std::uint32_t>(seed), false, true);
}

TEST_CASE(
    "node: what members say comes late, after others have told of another view, and nobody loses a "
    "link by it") {
  const auto seeds = test::number_asked("POSEIDON_LOSSES", 120);
  const auto first = test::number_asked("POSEIDON_LOSSES_SEED", 1);
  for (auto seed = first; seed < first + seeds; ++seed)
    lose_anybody(static_cast<std::uint32_t>(seed), seed % 2 == 0, false, true);
}

TEST_CASE("node: by a schedule views and routes change while whoever it is is killed") {
  const auto seeds = test::number_asked("POSEIDON_LOSSES", 40);
  const auto first = test::number_asked("POSEIDON_LOSSES_SEED", 1);
  for (auto seed = first; seed < first + seeds; ++seed)
    lose_by_schedule(static_cast<std::uint32_t>(seed));
}

TEST_CASE("node: whoever is told to end the run ends it, while nodes are killed, join and leave") {
  const auto seeds = test::number_asked("POSEIDON_LOSSES", 40);
  const auto first = test::number_asked("POSEIDON_LOSSES_SEED", 1);
  for (auto seed = first; seed < first + seeds; ++seed)
    end_while_nodes_are_lost(static_cast<std::uint32_t>(seed));
}

TEST_CASE("node: newcomers, too, are killed and leave, in orders that have found something once") {
  for (const std::uint32_t seed :
       {56, 106, 111, 160, 745, 1203, 1304, 1380, 3748, 5298, 5845, 6202, 9109})
    lose_anybody(seed, false);
  lose_in_any_order(6541, true);
  lose_anybody(6722, true);
  for (const std::uint32_t seed : {20916, 31366, 33674}) lose_anybody(seed, true);
  lose_anybody(6090, false, true);
  lose_anybody(20560, false, true);
  lose_by_schedule(569);
}
