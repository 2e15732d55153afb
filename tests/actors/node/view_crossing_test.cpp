// What nodes say while the view changes under way of their frames.
// POSEIDON_VIEW_CROSSINGS: in how many orders nodes join and leave.
#include "tests/actors/node/node_rig.hpp"
#include "tests/number_asked.hpp"

#include <algorithm>
#include <optional>
#include <random>
#include <set>
#include <utility>

using namespace poseidon;
using test::node_rig;

namespace {

/// A frame of a node that joins a run of two, and is no member yet.
test::frame_in from_a_newcomer(frame_header h) {
  return {{seat_id{2}}, std::move(h), {}};
}

/// Two nodes train, and a newcomer that says nothing has dialed the leader. Returns  its line.
std::shared_ptr<test::line> let_one_dial(node_rig& t) {
  REQUIRE(t.until_clock(2));
  std::shared_ptr<tcp_socket> socket;
  link_identity newcomer;
  newcomer.listen_address = "c:7600";
  auto line = t.wiring->dial("a:7600", newcomer, socket);
  REQUIRE(t.until_said(0, "worker 2 joined from c:7600"));
  return line;
}

/// Keeps the frame of this kind that travels on the first connection that a host dials, until it is let go.
template <class Frame>
class kept_frame {
 public:
  kept_frame(node_rig& t, const std::string& host) : wiring_(t.wiring) {
    t.wiring->on_line = [this, host](const std::shared_ptr<test::line>& made) {
      if (on_ || made->hosts[0] != host) return;
      on_ = made;
      made->mischief = [this](int to, test::frame_in f) {
        if (!std::holds_alternative<Frame>(f.header)) return std::vector{std::move(f)};
        to_ = to;
        frame_ = std::move(f);
        return std::vector<test::frame_in>{};
      };
    };
  }
  kept_frame(const kept_frame&) = delete;
  kept_frame& operator=(const kept_frame&) = delete;
  ~kept_frame() {
    wiring_->on_line = [](const std::shared_ptr<test::line>&) {};
    if (on_) on_->mischief = {};
  }
  [[nodiscard]] bool is_here() const { return frame_.has_value(); }
  void let_go() {
    on_->mischief = {};
    on_->put(to_, std::move(*frame_));
  }

 private:
  std::shared_ptr<test::fake_wiring> wiring_;
  std::shared_ptr<test::line> on_;
  int to_ = 0;
  std::optional<test::frame_in> frame_;
};

}  // namespace

TEST_CASE(
    "node: a newcomer that speaks as if it were a member is dropped, and the members train on") {
  const std::vector<frame_header> said{frames::worker_done{version_id{1}},
                                       frames::member_ready{1, 1},
                                       frames::leave_wanted{"because"},
                                       frames::stop_requested{"because"},
                                       frames::worker_paused{clock_id{4}},
                                       frames::probe{1, true},
                                       frames::hold_training{},
                                       frames::start_training{},
                                       frames::gather_history{version_id{1}},
                                       frames::push_gradient{}};
  for (const auto& h : said) {
    CAPTURE(kind_name(h));
    node_rig t;
    t.clocks = 100;
    t.cluster(2);
    (void)let_one_dial(t);
    t.sim.tell(t.nodes[0]->network->links.at(2), from_a_newcomer(h));
    t.sim.settle();
    for (const auto& n : t.nodes) {
      CHECK(n->error() == "");
      CHECK(n->exit_code() == 0);
    }
    CHECK(t.nodes[0]->display->said("worker 2, which was about to join, has gone: "));
  }
}

TEST_CASE("node: a newcomer is told what it needs to get ready, and that it is no member yet") {
  node_rig t;
  t.clocks = 100;
  t.cluster(2);
  const auto line = let_one_dial(t);
  REQUIRE(t.until([&] { return !line->sides[0].waiting.empty(); }));
  const auto* told = std::get_if<frames::view>(&line->sides[0].waiting.front().header);
  REQUIRE(told != nullptr);
  CHECK(told->prospect);
  CHECK(told->you == seat_id{2});
  auto members = told->members;
  for (auto& m : members) CHECK(!std::exchange(m.fingerprint, "").empty());
  CHECK(members == std::vector<frames::member>{{seat_id{0}, "a:7600"}, {seat_id{1}, "b:7600"}});
  t.sim.tell(t.nodes[0]->network->links.at(2), from_a_newcomer(frames::join_ready{7}));
  t.sim.settle();
  for (const auto& n : t.nodes) CHECK(n->exit_code() == 0);
  const auto* bye = std::get_if<frames::goodbye>(&line->sides[0].waiting.back().header);
  REQUIRE(bye != nullptr);
  CHECK(bye->of == frames::goodbye::cause::refused);
  CHECK(
      bye->reason.find("it splits its batch over 7 replicas (its --devices), the run has 1 on each "
                       "node") != std::string::npos);
}

TEST_CASE("node: a newcomer that is ready after one with a later number links this one, too") {
  node_rig t;
  t.clocks = 400;
  kept_frame<frames::join_ready> kept(t, "c:7600");
  t.cluster(2);
  t.joiner("c");
  REQUIRE(t.until_said(0, "worker 2 joined from c:7600"));
  t.joiner("d");
  REQUIRE(t.until_said(0, "view 2: worker 3 (d:7600)"));
  REQUIRE(t.until([&] { return kept.is_here(); }));
  bool leaves = false;
  SUBCASE("which stays") {}
  SUBCASE("which leaves then") {
    leaves = true;
    REQUIRE(t.until_said(3, "view 2: 3 nodes train"));
    t.sim.tell(t.nodes[3]->it, interrupted{15, false, true});
    REQUIRE(t.until_said(0, "worker 3 (d:7600) leaves"));
    t.sim.step();
    t.sim.pass(std::chrono::milliseconds{200});
  }
  kept.let_go();
  CHECK(t.until_said(0, leaves ? "view 3: worker 2 (c:7600) joined, worker 3 (d:7600) left"
                               : "view 3: worker 2 (c:7600) joined"));
  t.sim.settle();
  for (std::size_t n = 0; n < t.nodes.size(); ++n)
    CHECK(t.nodes[n]->exit_code() == (leaves && n == 3 ? 143 : 0));
}

TEST_CASE("node: a newcomer that comes while the first node still times its links joins later") {
  node_rig t;
  t.clocks = 400;
  t.routes.what = route_option::kind::automatic;
  kept_frame<frames::probe> kept(t, "b:7600");
  t.cluster(2);
  REQUIRE(t.until([&] { return kept.is_here(); }));
  t.joiner("c");
  REQUIRE(t.until_said(0, "worker 2 joined from c:7600"));
  t.sim.settle();
  CHECK(t.nodes[0]->display->views.empty());
  kept.let_go();
  t.sim.settle();
  CHECK(t.nodes[2]->display->said("joined: worker 2 of 3"));
  for (const auto& n : t.nodes) {
    CHECK(n->error() == "");
    CHECK(n->exit_code() == 0);
  }
}

TEST_CASE("node: a newcomer joins, although a member has left while it got ready") {
  node_rig t;
  t.clocks = 600;
  kept_frame<frames::view> kept(t, "d:7600");
  t.cluster(3);
  REQUIRE(t.until_clock(2));
  t.joiner("d");
  REQUIRE(t.until([&] { return kept.is_here(); }));
  t.sim.tell(t.nodes[2]->it, interrupted{15, false, true});
  REQUIRE(t.until_said(0, "worker 2 (c:7600) leaves"));
  for (int i = 0; i < 20; ++i) t.sim.step();
  t.sim.pass(std::chrono::milliseconds{200});
  REQUIRE(t.until(
      [&] { return t.nodes[2]->result.has_value() && !t.wiring->hosts.contains("c:7600"); }));
  kept.let_go();
  REQUIRE(t.until_said(3, "no node listens at c:7600; joining again"));
  for (int i = 0; i < 20; ++i) t.sim.step();
  t.sim.pass(std::chrono::milliseconds{250});  // it asks again then
  t.sim.settle();
  CHECK(t.nodes[3]->display->said("joined: worker "));
  for (std::size_t n = 0; n < t.nodes.size(); ++n)
    CHECK(t.nodes[n]->exit_code() == (n == 2 ? 143 : 0));
}

TEST_CASE(
    "node: a member that wants to leave as its leader hands over ends in order, and so do the "
    "others") {
  node_rig t;
  t.clocks = 400;
  bool next_view_is_told = false;
  t.wiring->on_line = [&](const std::shared_ptr<test::line>& made) {
    made->mischief = [&](int, test::frame_in f) {
      next_view_is_told = next_view_is_told || std::holds_alternative<frames::next_view>(f.header);
      return std::vector{std::move(f)};
    };
  };
  t.cluster(3);
  REQUIRE(t.until_clock(3));
  t.sim.tell(t.nodes[0]->it, interrupted{15, false, true});
  REQUIRE(t.until_said(0, "worker 0 (a:7600) leaves"));
  for (int i = 0; i < 20; ++i) t.sim.step();
  t.sim.pass(std::chrono::milliseconds{200});
  REQUIRE(t.until([&] { return next_view_is_told; }));
  interrupted second{15};
  SUBCASE("it leaves") {
    second.leaves = true;
  }
  SUBCASE("it ends the run") {}
  SUBCASE("it wants a snapshot") {
    second.snapshot = true;
  }
  t.sim.tell(t.nodes[2]->it, second);  // it has not heard of the next view
  t.sim.settle();
  t.sim.advance(std::chrono::milliseconds{200});
  for (const auto& n : t.nodes) {
    CHECK(n->error() == "");
    CHECK((n->exit_code() == 0 || n->exit_code() == 143));
  }
}

TEST_CASE(
    "node: a member that is lost while the view changes ends the run, and the survivors say so") {
  node_rig t;
  t.clocks = 400;
  t.cluster(3);
  REQUIRE(t.until_clock(3));
  t.joiner("d");
  SUBCASE("while all drain") {
    REQUIRE(t.until_said(0, "another view begins with iteration "));
  }
  SUBCASE("while all build") {
    REQUIRE(t.until_said(3, "joined: worker 3 of 4"));
  }
  for (const std::uint32_t other : {0, 2, 3}) {
    const auto& links = t.nodes[other]->network->links;
    if (links.contains(1)) t.sim.tell(links.at(1), test::cut_line{"reset"});
  }
  t.sim.tell(t.nodes[1]->network->links.at(0), test::cut_line{"reset"});
  t.sim.settle();
  for (const std::size_t n : {0, 2, 3}) {
    CAPTURE(n);
    REQUIRE(t.nodes[n]->result);
    CHECK(t.nodes[n]->exit_code() == 3);
  }
}

TEST_CASE("node: a leaver that is lost before it has given its solver state away ends the run") {
  node_rig t;
  t.clocks = 100;
  t.cluster(2);
  REQUIRE(t.until_clock(3));
  t.sim.tell(t.nodes[1]->it, interrupted{15, false, true});
  REQUIRE(t.until_said(0, "worker 1 (b:7600) leaves"));
  for (int i = 0; i < 20; ++i) t.sim.step();
  t.sim.pass(std::chrono::milliseconds{200});
  REQUIRE(t.until_said(0, "view 2: worker 0 (a:7600), this node"));
  t.sim.tell(t.nodes[0]->network->links.at(1), test::cut_line{"reset"});
  t.sim.tell(t.nodes[1]->network->links.at(0), test::cut_line{"reset"});
  t.sim.settle();
  REQUIRE(t.nodes[0]->result);
  CHECK(t.nodes[0]->exit_code() == 3);
  CHECK(t.nodes[0]->error().starts_with("the connection to worker 1 (b:7600) is lost: reset"));
  CHECK(t.nodes[1]->exit_code() == 3);
}

TEST_CASE(
    "node: in whatever order nodes get their turns, some join, some leave, and all end in order") {
  const auto seeds = test::number_asked("POSEIDON_VIEW_CROSSINGS", 60);
  for (std::uint32_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    node_rig t;
    t.clocks = 60;
    if (random() % 2 == 0) t.more_solver = "poseidon { staleness: 1 } ";
    t.survive = random() % 3;
    if (random() % 2 == 0)
      t.routes = {route_option::kind::listed, "test", {{"ip1", route::factor_broadcast, 0, 0}}};
    const std::size_t members = 2 + random() % 3;
    CAPTURE(members);
    t.cluster(members);
    REQUIRE(t.until_clock(2));
    // The one that got its number first may be ready last.
    std::vector<std::string> others;
    for (std::size_t n = 0; n < members; ++n) others.emplace_back(1, static_cast<char>('a' + n));
    for (std::size_t n = random() % 4; n > 0; --n) t.joiner("x" + std::to_string(n), others);
    // Wishes to leave are collected for 200 ms; who dialed a leader that was being replaced dials again after 250.
    std::set<std::size_t> leavers, killed;
    for (const int turns : {50, 100, 200, 200}) {
      // Killed: before it is a member it costs nobody anything.
      const auto victim = members + random() % 4;
      if (victim < t.nodes.size() && !leavers.contains(victim) && !t.has_joined(victim)) {
        killed.insert(victim);
        leavers.insert(victim);
        t.kill(victim);
      }
      const auto n = random() % (t.nodes.size() + 1);
      // A newcomer that is asked twice goes at once, whoever waits for it.
      const bool is_newcomer = n >= members && n < t.nodes.size() && !leavers.contains(n);
      if (is_newcomer || (n < members && leavers.size() + 1 < members)) {
        leavers.insert(n);
        t.sim.tell(t.nodes[n]->it, interrupted{15, false, true});
      }
      for (int i = 0; i < turns && t.sim.step_any(random); ++i) {
      }
      t.sim.pass(std::chrono::milliseconds{250});
    }
    while (t.sim.step_any(random)) {
    }
    for (std::size_t n = 0; n < t.nodes.size(); ++n) {
      CAPTURE(n);
      if (killed.contains(n)) continue;
      // All were ready, and the view has begun, before anybody noticed: a member is lost, which ends the run.
      const bool lost =
          std::any_of(killed.begin(), killed.end(), [&](const auto k) { return t.has_joined(k); });
      if (lost && t.nodes[n]->result) continue;
      CHECK(t.nodes[n]->error() == "");
      const bool may_leave = leavers.contains(n) && t.nodes[n]->exit_code() == 143;
      CHECK((may_leave || t.nodes[n]->exit_code() == 0));
    }
  }
}
