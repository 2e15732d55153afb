#include "actors/cluster/view_change.hpp"

#include "tests/sim.hpp"

#include <doctest/doctest.h>

using namespace poseidon;
using namespace std::chrono_literals;
using change_step = view_change::step;

namespace {

constexpr clock_id at_20{20}, at_30{30};
const frames::next_view without_the_first{
    3, clock_id{20}, {{seat_id{1}, "b:1"}, {seat_id{2}, "c:1"}}, {1, 0}};
const view_change::time_point noon{12h};

}  // namespace

TEST_CASE(
    "view_change: a node drains, gives its state away, ends the graph and rebuilds, in this "
    "order") {
  test::sim sim;
  const auto a = sim.listen<shut_down>(), b = sim.listen<shut_down>();
  const auto address = [](const auto& p) {
    return caf::actor_cast<caf::actor_addr>(p.in.target());
  };
  view_change c;
  CHECK(!c.release(without_the_first, 1));
  REQUIRE(c.agree(at_20, true));
  CHECK(c.at() == change_step::draining);
  CHECK(!c.release(without_the_first, 1));
  REQUIRE(c.paused(3, noon));
  CHECK(!c.paused(4, noon));
  CHECK(!c.leader());
  REQUIRE(c.release(without_the_first, 2));
  CHECK(c.leader() == seat_id{1});
  const auto one = std::make_shared<chunk_histories>(), other = std::make_shared<chunk_histories>();
  CHECK(!c.left(address(a)));
  CHECK(!c.released({one}));
  CHECK(c.released({other}));
  CHECK(c.at() == change_step::leaving);
  CHECK(!c.released({other}));
  c.leave({address(a), address(b)});
  CHECK(!c.left(address(a)));
  CHECK(!c.left(address(a)));
  REQUIRE(c.left(address(b)));
  CHECK(c.at() == change_step::rebuilding);
  CHECK(c.clock() == at_20);
  CHECK(c.next().epoch == 3);
  CHECK(c.test_phases() == 3);
  CHECK(c.histories().size() == 2);
  c.rebuild(std::make_shared<partition>());
  CHECK(c.before() != nullptr);
  CHECK(c.resume(noon + 250ms) == 250ms);
  CHECK(!c.under_way());
  CHECK(c.before() == nullptr);
  CHECK(!c.leader());
  CHECK(c.histories().empty());
}

TEST_CASE("view_change: copies of another node's solver state are there by its owner") {
  view_change c;
  REQUIRE(c.agree(at_20, true));
  REQUIRE(c.paused(0, noon));
  REQUIRE(c.release(without_the_first, 2));
  const auto own = std::make_shared<chunk_histories>(), copy = std::make_shared<chunk_histories>();
  CHECK(!c.released({nullptr, {{worker_id{2}, copy}}}));
  CHECK(c.released({own}));
  CHECK(c.histories().size() == 1);
  CHECK(c.histories().front() == own);
  CHECK(c.copies_of(worker_id{2}) == copy);
  CHECK(c.copies_of(worker_id{1}) == nullptr);
}

TEST_CASE("view_change: a change that is agreed too early waits until the node trains") {
  view_change c;
  CHECK(!c.agree(at_20, false));
  CHECK(!c.under_way());
  CHECK(c.take_early() == at_20);
  CHECK(!c.take_early());
}

TEST_CASE("view_change: a change that is agreed during another one outlives that one") {
  view_change c;
  REQUIRE(c.agree(at_20, true));
  CHECK(!c.agree(at_30, true));
  CHECK(c.clock() == at_20);
  (void)c.resume(noon);
  CHECK(c.take_early() == at_30);
}

TEST_CASE("view_change: another next view takes the place of one that has not begun") {
  test::sim sim;
  const auto a = sim.listen<shut_down>();
  const auto actor = caf::actor_cast<caf::actor_addr>(a.in.target());
  const frames::next_view second{4, clock_id{20}, {{seat_id{1}, "b:1"}}, {1, 0}};
  view_change c;
  CHECK(!c.replace(second));
  REQUIRE(c.agree(at_20, true));
  REQUIRE(c.paused(3, noon));
  CHECK(!c.replace(second));
  REQUIRE(c.release(without_the_first, 1));
  CHECK(!c.has_entered());
  SUBCASE("while solver state is given away: the old graph ends as it would have") {
    REQUIRE(c.replace(second));
    CHECK(c.at() == change_step::releasing);
    CHECK(c.next().epoch == 4);
  }
  SUBCASE("after a graph was built for it: that one ends, too, and what was given away is kept") {
    REQUIRE(c.released({std::make_shared<chunk_histories>()}));
    c.leave({actor});
    REQUIRE(c.left(actor));
    const auto before = std::make_shared<partition>();
    c.rebuild(before);
    CHECK(c.has_entered());
    REQUIRE(c.replace(second));
    c.leave({actor});
    CHECK(c.at() == change_step::leaving);
    REQUIRE(c.left(actor));
    CHECK(c.at() == change_step::rebuilding);
    CHECK(c.before() == before);
    CHECK(c.histories().size() == 1);
    CHECK(c.resume(noon + 250ms) == 250ms);
    CHECK(!c.replace(second));
  }
}

TEST_CASE("view_change: a change that was agreed on in a view that is replaced never comes") {
  view_change c;
  REQUIRE(c.agree(at_20, true));
  REQUIRE(c.paused(0, noon));
  REQUIRE(c.release(without_the_first, 0));
  CHECK(!c.agree(at_30, false));
  REQUIRE(c.replace(without_the_first));
  (void)c.resume(noon);
  CHECK(!c.take_early());
}

TEST_CASE("view_change: a newcomer has no old graph, and its first view may be replaced, too") {
  view_change c;
  c.enter(at_20, 5, without_the_first);
  CHECK(c.under_way());
  CHECK(c.has_entered());
  CHECK(c.before() == nullptr);
  CHECK(c.test_phases() == 5);
  CHECK(c.clock() == at_20);
  REQUIRE(c.replace({4, clock_id{20}, {{seat_id{1}, "b:1"}}, {1, 0}}));
  CHECK(c.next().epoch == 4);
}

TEST_CASE(
    "view_change: where a member is lost a node freezes, and its state stays until it is known "
    "from where") {
  test::sim sim;
  const auto a = sim.listen<shut_down>();
  const auto address = caf::actor_cast<caf::actor_addr>(a.in.target());
  view_change c;
  SUBCASE("as it trains") {}
  SUBCASE("as it drains") {
    REQUIRE(c.agree(at_20, true));
  }
  REQUIRE(c.freeze({address}, {seat_id{1}, seat_id{2}}, noon));
  CHECK(!c.freeze({address}, {}, noon));
  CHECK(c.at() == change_step::freezing);
  CHECK(c.awaits_next());
  CHECK(!c.agree(at_30, true));             // of the view that is given up
  CHECK(!c.release(without_the_first, 1));  // its last kernels still run
  CHECK(!c.silent(seat_id{1}));
  CHECK(!c.left(address));
  REQUIRE(c.silent(seat_id{2}));
  CHECK(c.at() == change_step::frozen);
  REQUIRE(c.release(without_the_first, 1));
  CHECK(c.clock() == at_20);
  CHECK(c.released({std::make_shared<chunk_histories>()}));
}

TEST_CASE("view_change: a node that has paused before a clock needs not freeze") {
  view_change c;
  REQUIRE(c.agree(at_20, true));
  REQUIRE(c.paused(0, noon));
  CHECK(!c.freeze({}, {}, noon));
  CHECK(c.at() == change_step::paused);
}

TEST_CASE(
    "view_change: what a view began with is given again where the next one begins with it, too") {
  test::sim sim;
  const auto a = sim.listen<shut_down>();
  const auto address = caf::actor_cast<caf::actor_addr>(a.in.target());
  view_change c;
  REQUIRE(c.agree(at_20, true));
  REQUIRE(c.paused(3, noon));
  REQUIRE(c.release(without_the_first, 1));
  const auto state = std::make_shared<chunk_histories>();
  REQUIRE(c.released({state}));
  c.leave({address});
  REQUIRE(c.left(address));
  c.rebuild(std::make_shared<partition>());
  (void)c.resume(noon, true);
  REQUIRE(c.freeze({address}, {}, noon));
  REQUIRE(c.left(address));
  CHECK(c.kept_cut(false) == nullptr);
  CHECK(c.kept_cut(true) != nullptr);
  auto again = without_the_first;
  again.epoch = 4;
  REQUIRE(c.release_former(again));
  CHECK(c.at() == change_step::leaving);
  REQUIRE(c.histories().size() == 1);
  CHECK(c.histories().front() == state);
}

TEST_CASE(
    "view_change: a node that was not told to keep what a view began with cannot give it again") {
  test::sim sim;
  const auto a = sim.listen<shut_down>();
  const auto address = caf::actor_cast<caf::actor_addr>(a.in.target());
  view_change c;
  c.enter(at_20, 0, without_the_first);
  (void)c.resume(noon, false);
  REQUIRE(c.freeze({address}, {}, noon));
  REQUIRE(c.left(address));
  CHECK(!c.release_former(without_the_first));
}
