#include "actors/core/actor.hpp"

#include "tests/sim.hpp"

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/sec.hpp>
#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>

using namespace poseidon;

namespace {

struct fail_now {};
struct end_now {};
struct connect_ring {
  port<fail_now> next;
  std::shared_ptr<int> seen;  // how long it is kept
};

/// One of several actors that hold ports of each other.
class ring_actor : public actor<ring_actor> {
 public:
  static constexpr const char* type_name = "ring_actor";
  using accepts = messages<connect_ring, fail_now, end_now>;
  using sends = messages<>;
  explicit ring_actor(actor_context context) : actor(context) {}
  void on(const connect_ring& m) { next_ = m; }
  void on(const fail_now&) { throw std::runtime_error("as told"); }
  void on(const end_now&) { quit(); }

 private:
  until_end<connect_ring> next_{this};
};

}  // namespace

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(fail_now)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(end_now)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(connect_ring)

TEST_CASE("actor: one that ends by an exception releases the ports that it was given") {
  test::sim sim;
  const auto seen = std::make_shared<int>();
  const auto a = sim.spawn<ring_actor>("ring a");
  const auto b = sim.spawn<ring_actor>("ring b");
  sim.tell(a, connect_ring{b, seen});
  sim.tell(b, connect_ring{a, seen});
  sim.settle();
  CHECK(seen.use_count() == 3);
  sim.tell(a, fail_now{});
  sim.settle();
  CHECK(seen.use_count() == 2);
  sim.tell(b, fail_now{});
  sim.settle();
  CHECK(seen.use_count() == 1);
}

TEST_CASE("actor: what it was given until its end is gone before anybody hears of the end") {
  test::sim sim;
  const auto seen = std::make_shared<int>();
  const auto a = sim.spawn<ring_actor>("ring a");
  sim.tell(a, connect_ring{{}, seen});
  sim.settle();
  long held = 0;
  a.untyped()->attach_functor([&] { held = seen.use_count(); });
  SUBCASE("by an exception") {
    sim.tell(a, fail_now{});
  }
  SUBCASE("told to end") {
    sim.tell(a, end_now{});
  }
  sim.settle();
  CHECK(held == 1);
}

TEST_CASE(
    "actor: whether it has failed for all nodes, or for this one alone, comes with its words") {
  test::sim sim;
  const auto failure = [&](const auto& thrown) {
    return failure_of(sim.system(), error_of(std::make_exception_ptr(thrown), "shard"));
  };
  const auto alone = failure(std::runtime_error("the disk is full"));
  CHECK(alone.text == "shard: the disk is full");
  CHECK_FALSE(alone.of_all);
  const auto of_all = failure(nodes_differ("worker 1 sends float16"));
  CHECK(of_all.text == "shard: worker 1 sends float16");
  CHECK(of_all.of_all);
  CHECK(failure(7).text == "shard: unknown exception");
  // What CAF itself ends an actor with says nothing of other nodes.
  const auto of_caf = failure_of(sim.system(), caf::make_error(caf::sec::runtime_error, "timeout"));
  CHECK(of_caf.text.find("timeout") != std::string::npos);
  CHECK_FALSE(of_caf.of_all);
}
