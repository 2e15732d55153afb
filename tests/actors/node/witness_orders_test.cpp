// Two or three nodes train, and a witness votes: whoever is killed, cut off, or leaves, in whatever order, one side goes on at most, and
// no bit is lost. POSEIDON_PARTITIONS: in how many orders, from the seed POSEIDON_LOSSES_SEED on.
#include "tests/actors/node/time_passes.hpp"
#include "tests/number_asked.hpp"

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace poseidon::witness_orders {

using test::node_rig;

namespace {

/// The views that have begun, as far as any node has told its user: one of each number, from one iteration on.
std::vector<progress::view> views_of_all(const node_rig& t) {
  std::map<std::uint64_t, progress::view> by_epoch;
  for (const auto& n : t.nodes)
    for (const auto& v : n->display->views) {
      const auto& first = by_epoch.emplace(v.epoch, v).first->second;
      CAPTURE(v.epoch);
      CHECK(v.seats == first.seats);
      CHECK(v.witnesses == first.witnesses);
      CHECK(v.first_clock == first.first_clock);
    }
  std::vector<progress::view> out;
  for (const auto& [epoch, v] : by_epoch) out.push_back(v);
  return out;
}

/// What happens to a run of two or three nodes and a witness, by chance.
class misfortunes {
 public:
  misfortunes(node_rig& t, std::mt19937& random, std::size_t members) : t_(t), random_(random) {
    for (std::size_t n = 0; n < members; ++n) join(std::string(1, static_cast<char>('a' + n)));
  }
  /// Nodes that were told to leave.
  [[nodiscard]] const std::set<std::size_t>& leavers() const { return leavers_; }
  [[nodiscard]] const std::string& told() const { return told_; }

  void some() {
    for (auto left = 3 + random_() % 4; left > 0; --left) {
      t_.some_turns(random_, random_() % 2 == 0 ? 600 : 60);
      one();
      for (auto ticks = random_() % 3 == 0 ? random_() % 150 : random_() % 3; ticks > 0; --ticks) {
        t_.some_turns(random_, 100);
        t_.sim.pass(std::chrono::milliseconds{20});
      }
    }
  }
  void witness() {
    if (voters_ == 3) return;
    const auto host = std::string(1, static_cast<char>('t' + voters_++));
    told_ += " witness " + host;
    t_.witness_at(host, hosts_);
  }

 private:
  void join(const std::string& host) { hosts_.push_back(host); }
  void one() {
    const auto who = random_() % t_.nodes.size();
    const bool lives = !t_.killed.contains(who) && !t_.nodes[who]->result;
    switch (random_() % 8) {
      case 0:
      case 1: {
        std::set<std::string> side;
        for (const auto& n : t_.nodes)
          if (random_() % 2 == 0) side.insert(n->at);
        told_ += " cut";
        for (const auto& host : side) told_ += " " + host;
        return t_.wiring->split(std::move(side));
      }
      case 2:
      case 3:
        told_ += " heal";
        return t_.wiring->heal();
      case 4:
        if (!lives) return;
        told_ += " kill " + t_.nodes[who]->at;
        return t_.kill(who);
      case 5: {
        if (newcomers_ == 2) return;
        const auto host = std::string(1, static_cast<char>('x' + newcomers_++));
        told_ += " join " + host;
        return (void)t_.joiner(host, hosts_);
      }
      case 6:
        return witness();
      default:
        if (!lives || !leavers_.insert(who).second) return;
        told_ += " leave " + t_.nodes[who]->at;
        t_.interrupt(who, {15, false, true});
    }
  }

  node_rig& t_;
  std::mt19937& random_;
  std::vector<std::string> hosts_;
  std::set<std::size_t> leavers_;
  std::string told_;
  std::size_t voters_ = 0, newcomers_ = 0;
};

/// Until all have ended; those that wait for others that are not there any more, or to join one that does, are told to end.
void end_all(node_rig& t, std::mt19937& random, std::size_t members) {
  t.wiring->heal();
  t.go_on_anyhow(random);
  for (std::size_t n = 0; n < t.nodes.size(); ++n) {
    if (t.killed.contains(n) || t.nodes[n]->result) continue;
    const auto ends = t.ends();
    CAPTURE(ends);
    const bool trains = t.nodes[n]->it && (n < members || t.has_joined(n));
    CHECK((!trains || t.nodes[n]->display->said("paused: ")));
    t.interrupt(n, {2, false, false});
  }
  t.go_on_anyhow(random);
}

void lose_anything(std::uint32_t seed, bool comes_first) {
  CAPTURE(seed);
  std::mt19937 random(seed);
  node_rig t;
  t.progress_limit = std::chrono::milliseconds{0};
  t.clocks = 30;
  t.survive = 1;
  if (random() % 3 == 0) t.more_solver = "poseidon { staleness: 1 } ";
  if (random() % 3 == 0)
    t.routes = {route_option::kind::listed, "test", {{"ip1", route::factor_broadcast, 0, 0}}};
  const std::size_t members = 2 + random() % 2;
  CAPTURE(members);
  misfortunes all(t, random, members);
  t.cluster(members);
  REQUIRE(t.until_clock(2));
  all.witness();
  if (comes_first) REQUIRE(t.until_said(0, "view 2: witness "));
  all.some();
  end_all(t, random, members);
  const auto told = all.told(), ends = t.ends();
  CAPTURE(told);
  CAPTURE(ends);
  bool ended_early = false, has_trained = false;
  for (std::size_t n = 0; n < t.nodes.size(); ++n) {
    CAPTURE(n);
    const auto& it = *t.nodes[n];
    CHECK(!it.display->said("sent a bad frame"));
    ended_early = ended_early || it.display->said("ending after iteration ");
    if (t.killed.contains(n)) continue;
    REQUIRE(it.result);
    for (const char* const wrong : {"internal error", "cannot follow", "witness: "})
      CHECK(it.error().find(wrong) == std::string::npos);
    has_trained = has_trained || (it.it && it.exit_code() == 0 && it.display->done == t.clocks);
  }
  const auto views = views_of_all(t);
  const bool exact = t.more_solver.empty() && t.routes.what != route_option::kind::listed;
  if (!ended_early && has_trained && exact) CHECK(t.weights(t.clocks) == test::chained(t, views));
}

/// It has begun to vote some messages ago at most, so the members may not have got that far, and others may come or go at the same time.
void leave_early(std::uint32_t seed) {
  CAPTURE(seed);
  std::mt19937 random(seed);
  node_rig t;
  t.clocks = 1000000;  // the run's end is no way out
  t.survive = 1;
  const std::size_t members = 2 + random() % 2, witness = members;
  CAPTURE(members);
  t.cluster(members);
  REQUIRE(t.until_clock(2));
  t.witness_at("w", {"a", "b"});
  REQUIRE(
      test::until(t, [&] { return t.nodes[witness]->display->said("and this witness votes"); }));
  t.some_turns(random, random() % 2 == 0 ? 3 : 300);
  const bool leaves_first = random() % 2 == 0;
  if (leaves_first) t.interrupt(witness, {15, false, true});
  const auto also = random() % 4;
  CAPTURE(also);
  if (also == 1) t.interrupt(random() % members, {15, false, true});
  if (also == 2 && members == 3) t.kill(random() % members);
  if (also == 3) (void)t.joiner("x", {"a", "b"});
  t.some_turns(random, 100);
  if (!leaves_first) t.interrupt(witness, {15, false, true});
  const bool has_ended = test::until(
      t, [&] { return t.nodes[witness]->result.has_value(); }, 3000);  // a minute
  const auto ends = t.ends();
  CAPTURE(ends);
  REQUIRE(has_ended);
  CHECK(t.nodes[witness]->exit_code() == 143);
  CHECK(t.nodes[witness]->error() == "");
}

}  // namespace

TEST_CASE(
    "witness: it leaves when it is told to, however early, and whoever comes or goes beside it") {
  const auto seeds = test::number_asked("POSEIDON_PARTITIONS", 60);
  const auto first = test::number_asked("POSEIDON_LOSSES_SEED", 1);
  for (auto seed = first; seed < first + seeds; ++seed)
    leave_early(static_cast<std::uint32_t>(seed));
}

TEST_CASE("witness: whatever is killed or cut off, one side goes on at most, bit for bit") {
  const auto seeds = test::number_asked("POSEIDON_PARTITIONS", 60);
  const auto first = test::number_asked("POSEIDON_LOSSES_SEED", 1);
  for (auto seed = first; seed < first + seeds; ++seed)
    lose_anything(static_cast<std::uint32_t>(seed), seed % 2 == 0);
}

}  // namespace poseidon::witness_orders
