// What nodes say while the view changes under way of their frames.
#include "tests/actors/node/node_rig.hpp"

#include <random>

using namespace poseidon;
using test::node_rig;

namespace {

/// A frame of a node that joins a run of two, and is no member yet.
test::frame_in from_a_newcomer(frame_header h) {
  return {{seat_id{2}}, std::move(h), {}};
}

}  // namespace

TEST_CASE(
    "node: a newcomer that speaks as if it were a member is dropped, and the members train on") {
  const std::vector<frame_header> said{frames::worker_done{version_id{1}},
                                       frames::member_ready{},
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
    REQUIRE(t.until_clock(2));
    std::shared_ptr<tcp_socket> socket;
    link_identity newcomer;
    newcomer.listen_address = "c:7600";
    const auto line = t.wiring->dial("a:7600", newcomer, socket);
    REQUIRE(t.until_said(0, "worker 2 joined from c:7600"));
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
  REQUIRE(t.until_clock(2));
  std::shared_ptr<tcp_socket> socket;
  link_identity newcomer;
  newcomer.listen_address = "c:7600";
  const auto line = t.wiring->dial("a:7600", newcomer, socket);
  REQUIRE(t.until_said(0, "worker 2 joined from c:7600"));
  REQUIRE(t.until([&] { return !line->sides[0].waiting.empty(); }));
  const auto* told = std::get_if<frames::view>(&line->sides[0].waiting.front().header);
  REQUIRE(told != nullptr);
  CHECK(told->prospect);
  CHECK(told->you == seat_id{2});
  CHECK(told->members ==
        std::vector<frames::member>{{seat_id{0}, "a:7600"}, {seat_id{1}, "b:7600"}});
  t.sim.tell(t.nodes[0]->network->links.at(2), from_a_newcomer(frames::join_ready{7}));
  t.sim.settle();
  for (const auto& n : t.nodes) CHECK(n->exit_code() == 0);
  const auto* bye = std::get_if<frames::goodbye>(&line->sides[0].waiting.back().header);
  REQUIRE(bye != nullptr);
  CHECK(bye->reason.find("it splits its batch over 7 replicas, the other nodes over 1") !=
        std::string::npos);
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
    "node: in whatever order nodes get their turns, one joins, one leaves, and all end in order") {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    node_rig t;
    t.clocks = 60;
    if (random() % 2 == 0) t.more_solver = "poseidon { staleness: 1 } ";
    if (random() % 2 == 0)
      t.routes = {route_option::kind::listed, "test", {{"ip1", route::factor_broadcast, 0, 0}}};
    const std::size_t members = 2 + random() % 2, leaver = random() % members;
    CAPTURE(members);
    CAPTURE(leaver);
    t.cluster(members);
    REQUIRE(t.until_clock(2));
    if (random() % 2 == 0) t.joiner("x");
    t.sim.tell(t.nodes[leaver]->it, interrupted{15, false, true});
    for (int i = 0; i < 150 && t.sim.step_any(random); ++i) {
    }
    t.sim.pass(std::chrono::milliseconds{200});
    while (t.sim.step_any(random)) {
    }
    for (std::size_t n = 0; n < t.nodes.size(); ++n) {
      CAPTURE(n);
      CHECK(t.nodes[n]->error() == "");
      CHECK(t.nodes[n]->exit_code() == (n == leaver ? 143 : 0));
    }
  }
}
