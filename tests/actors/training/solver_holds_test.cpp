// How a solver finds out whether a clock has begun, and leaves one that has not.
#include "tests/actors/training/solver_rig.hpp"

using namespace poseidon;
using poseidon::test::solver_rig;

namespace {

/// Two layers where passes turn back; clock 0 is over, and a pass of clock 1 is on its way.
struct solver_in_clock_1 : solver_rig {
  explicit solver_in_clock_1(const std::string& text = "")
      : solver_rig("max_iter: 10 snapshot_after_train: false " + text, {1, 1, 1, 0, 0, {}, {}, 2}) {
    clock();
    REQUIRE(started() == 2);
  }
  void ask(std::uint64_t epoch = 0) {
    tell(hold_clocks{epoch});
    REQUIRE(turns.got->size() == 2);
    CHECK(turns.got->back().from == clock_id{1});
    CHECK(held.got->empty());
  }
  void answer(bool first, bool second) {
    tell(passes_held{clock_id{1}, first});
    CHECK(held.got->empty());
    tell(passes_held{clock_id{1}, second});
    REQUIRE(held.got->size() == 1);
  }
  [[nodiscard]] clock_id held_before() const { return held.got->back().clock; }
  /// How often all turning layers have been told to let passes go.
  [[nodiscard]] std::size_t let_go() const {
    std::size_t out = 0;
    for (const auto& m : *turns.got) out += m.from ? 0 : 1;
    return out / 2;
  }
};

}  // namespace

TEST_CASE("solver: a clock whose passes have turned back nowhere has not begun, and is left") {
  solver_in_clock_1 t;
  t.ask(7);
  t.answer(false, false);
  CHECK(t.held_before() == clock_id{1});
  CHECK(t.held.got->back().epoch == 7);
  t.tell(pause_at{clock_id{1}, 8});
  REQUIRE(t.paused.got->size() == 1);
  CHECK(t.paused.got->front().version == version_id{1});
  CHECK(t.let_go() == 0);  // what is left never turns
  auto part = t.nets.part;
  part.first_clock = 1;
  t.go_on_with(part);
  REQUIRE(t.started() == 3);
  CHECK(t.last().clock == clock_id{1});
  t.answered[0] = 2;  // the pass that was left ended with its graph
  t.clock();
  CHECK(t.last().clock == clock_id{2});
}

TEST_CASE("solver: a clock that has begun somewhere is trained before the change") {
  solver_in_clock_1 t;
  t.ask();
  bool here = false;
  SUBCASE("on this node") {
    here = true;
    t.answer(true, false);
    CHECK(t.held_before() == clock_id{2});
  }
  SUBCASE("on another one") {
    t.answer(false, false);
    CHECK(t.held_before() == clock_id{1});
    CHECK(t.let_go() == 0);
  }
  CHECK(t.let_go() == (here ? 1 : 0));
  t.tell(pause_at{clock_id{2}});
  CHECK(t.let_go() == 1);
  CHECK(t.paused.got->empty());
  t.clock();
  CHECK(t.started() == 2);
  CHECK(t.paused.got->size() == 1);
}

TEST_CASE("solver: while it asks whether a clock has begun, no other one begins") {
  solver_in_clock_1 t;
  t.ask();
  t.clock();  // its passes turned before the question came
  CHECK(t.started() == 2);
  t.answer(true, true);
  CHECK(t.held_before() == clock_id{2});
  CHECK(t.let_go() == 1);
  t.tell(pause_at{clock_id{3}});
  CHECK(t.started() == 3);
  t.clock();
  CHECK(t.paused.got->size() == 1);
}

TEST_CASE("solver: a clock that belongs to a test, or is the first one of its view, is trained") {
  const bool first = [] {
    bool is_first = false;
    SUBCASE("the first one") {
      is_first = true;
    }
    SUBCASE("after a test") {}
    return is_first;
  }();
  solver_in_clock_1 t(first ? "" : "test_iter: 1 test_interval: 2 test_initialization: false");
  if (first) {
    t.tell(pause_at{clock_id{2}});
    t.clock();
    auto part = t.nets.part;
    part.first_clock = 2;
    t.go_on_with(part);
  } else {
    t.clock();
    t.test(0, 0.5f);
  }
  REQUIRE(t.last().clock == clock_id{2});
  t.turns.got->clear();
  t.tell(hold_clocks{});
  REQUIRE(t.turns.got->size() == 2);
  t.tell(passes_held{clock_id{2}, false});
  t.tell(passes_held{clock_id{2}, false});
  REQUIRE(t.held.got->size() == 1);
  CHECK(t.held_before() == clock_id{3});
  CHECK(t.let_go() == 1);
}

TEST_CASE(
    "solver: a change that was announced before is not mistaken for the one that is asked for") {
  solver_in_clock_1 t;
  t.ask();
  t.tell(pause_at{clock_id{5}});
  REQUIRE(t.held.got->size() == 1);
  CHECK(t.held_before() == clock_id{2});
  CHECK(t.let_go() == 1);
  t.tell(passes_held{clock_id{1}, false});
  t.tell(passes_held{clock_id{1}, false});
  CHECK(t.held.got->size() == 1);
  for (int clock = 1; clock < 5; ++clock) t.clock();
  CHECK(t.paused.got->size() == 1);
}

TEST_CASE("solver: a run can end with the version before a clock that has begun nowhere") {
  solver_in_clock_1 t;
  t.ask();
  t.answer(false, false);
  t.tell(stop_soon{"Ctrl-C"});
  REQUIRE(t.stop.got->size() == 1);
  CHECK(t.stop.got->front().version == version_id{1});
  CHECK(t.done.got->size() == 1);
  t.tell(pause_at{clock_id{1}});  // was on its way
  CHECK(t.done.got->size() == 1);
  CHECK(t.let_go() == 0);
}

TEST_CASE("solver: a run whose end has been decided ends in the view of that decision") {
  solver_in_clock_1 t;
  SUBCASE("before the question") {
    t.tell(stop_soon{"Ctrl-C"});
    t.ask();
  }
  SUBCASE("before the answers") {
    t.ask();
    t.tell(stop_soon{"Ctrl-C"});
  }
  REQUIRE(t.stop.got->size() == 1);
  CHECK(t.stop.got->front().version == version_id{2});
  t.answer(false, false);
  CHECK(t.held_before() == clock_id{2});
  CHECK(t.let_go() == 1);
  t.clock();
  CHECK(t.done.got->size() == 1);
}

TEST_CASE(
    "solver: what layers of a graph that has ended still say of held clocks counts for nothing") {
  solver_in_clock_1 t;
  t.ask();
  t.tell(passes_held{clock_id{1}, false});
  t.tell(give_up_clocks{});
  t.tell(passes_held{clock_id{1}, false});
  CHECK(t.held.got->empty());
  t.tell(go_back{version_id{1}});
  auto part = t.nets.part;
  part.first_clock = 1;
  t.go_on_with(part);
  CHECK(t.last().clock == clock_id{1});
}
