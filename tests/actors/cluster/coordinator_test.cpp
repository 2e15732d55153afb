#include "actors/cluster/coordinator.hpp"

#include "tests/sim.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {

struct coordinator_rig {
  test::sim sim;
  test::probe<everyone_ready> ready = sim.listen<everyone_ready>();
  test::probe<hold_everyone> hold = sim.listen<hold_everyone>();
  test::probe<change_agreed> agreed = sim.listen<change_agreed>();
  test::probe<everyone_drained> drained = sim.listen<everyone_drained>();
  handle<coordinator> it = sim.spawn<coordinator>("coordinator", coordinator_setup{3, "a:1"});

  coordinator_rig() {
    connect_coordinator m;
    m.ready = ready.in;
    m.hold = hold.in;
    m.agreed = agreed.in;
    m.drained = drained.in;
    tell(m);
    everybody_is_ready();
  }
  template <class M>
  void tell(M m) {
    sim.tell(it, std::move(m));
    sim.settle();
  }
  void everybody_is_ready() {
    for (std::uint32_t w = 0; w < 3; ++w) tell(member_is_ready{worker_id{w}});
  }
  void stands(std::uint32_t worker, std::uint64_t clock, bool drained_ = false) {
    tell(member_paused{worker_id{worker}, clock_id{clock}, drained_});
  }
};

}  // namespace

TEST_CASE("coordinator: routes change at the latest clock that anybody has not begun") {
  coordinator_rig t;
  REQUIRE(t.ready.got->size() == 1);
  t.tell(change_wanted{{0, 1}, std::nullopt, "links are fast"});
  REQUIRE(t.hold.got->size() == 1);
  t.stands(0, 41);
  t.stands(2, 43);
  CHECK(t.agreed.got->empty());
  t.stands(1, 42);
  REQUIRE(t.agreed.got->size() == 1);
  CHECK(t.agreed.got->front().clock == clock_id{43});
  CHECK(t.agreed.got->front().routes == std::vector<std::uint8_t>{0, 1});
  CHECK(t.agreed.got->front().why == "links are fast");

  SUBCASE("nobody builds anew before all have drained, nor begins before all have built") {
    t.stands(0, 43, true);
    t.stands(1, 43, true);
    CHECK(t.drained.got->empty());
    t.stands(2, 43, true);
    CHECK(t.drained.got->size() == 1);
    CHECK(t.ready.got->size() == 1);
    t.everybody_is_ready();
    CHECK(t.ready.got->size() == 2);
    t.tell(change_wanted{{0, 0}, std::nullopt, ""});
    CHECK(t.hold.got->size() == 2);
  }
  SUBCASE("one change at a time") {
    t.tell(change_wanted{{1, 1}, std::nullopt, ""});
    CHECK(t.hold.got->size() == 1);
  }
}

TEST_CASE("coordinator: of a change whose clock all know only the end is waited for") {
  coordinator_rig t;
  t.tell(change_wanted{{0, 1}, clock_id{20}, ""});
  CHECK(t.hold.got->empty());
  for (std::uint32_t w = 0; w < 3; ++w) t.stands(w, 20, true);
  CHECK(t.agreed.got->empty());
  CHECK(t.drained.got->size() == 1);
}
