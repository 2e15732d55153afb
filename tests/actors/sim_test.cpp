#include "tests/sim.hpp"

#include <caf/allowed_unsafe_message_type.hpp>
#include <doctest/doctest.h>

namespace poseidon::test_sim {
struct ball {
  int bounces = 0;
};
struct later {
  int bounces = 0;
};
}  // namespace poseidon::test_sim
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::test_sim::ball)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::test_sim::later)

namespace poseidon::test_sim {
namespace {

class wall : public actor<wall> {
 public:
  static constexpr const char* type_name = "wall";
  using accepts = messages<ball, later>;
  using sends = messages<ball>;
  wall(actor_context context, port<ball> out) : actor<wall>(context), out_(std::move(out)) {}
  void on(const ball& b) { tell(out_, ball{b.bounces + 1}, 12); }
  void on(const later& l) { tell_self(ball{l.bounces}, std::chrono::milliseconds{50}); }

 private:
  port<ball> out_;
};

TEST_CASE("sim: nothing runs before settle, and everything has run after it") {
  test::sim sim;
  auto end = sim.listen<ball>();
  auto second = sim.spawn<wall>("wall 2", end.in);
  auto first = sim.spawn<wall>("wall 1", port<ball>(second));
  sim.tell(first, ball{0});
  CHECK(end.got->empty());
  sim.settle();
  REQUIRE(end.got->size() == 1);
  CHECK(end.got->front().bounces == 2);
}

TEST_CASE("sim: a delayed message waits for virtual time, not for the clock on the wall") {
  test::sim sim;
  auto end = sim.listen<ball>();
  auto w = sim.spawn<wall>("wall", end.in);
  sim.tell(w, later{3});
  sim.settle();
  sim.advance(std::chrono::milliseconds{49});
  CHECK(end.got->empty());
  sim.advance(std::chrono::milliseconds{1});
  REQUIRE(end.got->size() == 1);
  CHECK(end.got->front().bounces == 4);
}

TEST_CASE("sim: what actors tell each other is counted by edge") {
  test::sim sim;
  auto end = sim.listen<ball>();
  auto w = sim.spawn<wall>("wall", end.in);
  for (int i = 0; i < 3; ++i) sim.tell(w, ball{i});
  sim.settle();
  const auto rows = sim.book().rows();
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].from == "wall");
  CHECK(rows[0].message == "ball");
  CHECK(rows[0].count == 3);
  CHECK(rows[0].bytes == 36);
}

TEST_CASE("sim: an actor that terminates is known to have ended, however it does") {
  test::sim sim;
  auto end = sim.listen<ball>();
  auto w = sim.spawn<wall>("wall", end.in);
  auto other = sim.spawn<wall>("other wall", end.in);
  caf::anon_send_exit(w.untyped(), caf::exit_reason::user_shutdown);
  sim.settle();
  for (const auto& table : sim.book().tables()) CHECK(table->ended() == (table->name() == "wall"));
}

}  // namespace
}  // namespace poseidon::test_sim
