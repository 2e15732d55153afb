// Actors on whose behalf a device updates: what they ask of it, and when.
#include "models/device/device_updates.hpp"

#include "actors/parameters/parameter_store.hpp"
#include "actors/parameters/server_shard.hpp"
#include "models/solver/solver_file.hpp"
#include "tests/actors/fakes.hpp"
#include "tests/sim.hpp"

#include <doctest/doctest.h>

#include <optional>

using namespace poseidon;

namespace {

constexpr chunk_id c0{0};

/// Values count the updates, solver state too.
class counting_updates : public device_updates {
 public:
  bool holds(std::size_t parameter) const override { return parameter == 0; }
  void update(const parameter_part& of, const rule_step& step, std::uint64_t version) override {
    CHECK(of.count == 3);
    CHECK(version == versions + 1);
    rates.push_back(step.rate);
    versions = version;
  }
  void update_average(const parameter_part&, float momentum, std::uint64_t version) override {
    kept = momentum;
    versions = version;
  }
  void finish() override {}
  void update_by_factors(const factor_update&, std::uint64_t) override {
    FAIL("not on this route");
  }
  bool read_values(std::size_t, std::uint64_t version, std::span<float> to) override {
    if (versions == 0) return false;
    CHECK(version == versions);
    std::fill(to.begin(), to.end(), static_cast<float>(versions));
    return true;
  }
  void read_history(const parameter_part&, std::size_t, std::span<float> to) override {
    std::copy(history.begin(), history.end(), to.begin());
  }
  void write_history(const parameter_part& of, std::size_t, std::span<const float> from) override {
    std::copy(from.begin(), from.end(), history.begin() + static_cast<std::ptrdiff_t>(of.first));
  }

  std::uint64_t versions = 0;
  std::vector<float> rates, history = std::vector<float>(3);
  std::optional<float> kept;
};

struct shard_alone {
  test::sim sim;
  std::shared_ptr<counting_updates> updates = std::make_shared<counting_updates>();
  std::shared_ptr<parameter_store> store = test::one_parameter_store(3, 3, 1);
  test::probe<chunk_fresh> gather = sim.listen<chunk_fresh>();
  test::probe<history_arrived> checkpointer = sim.listen<history_arrived>();
  handle<server_shard> shard;

  explicit shard_alone(std::optional<float> average_momentum = std::nullopt) {
    server_shard_setup s;
    s.passes = 2;
    s.solver.set_base_lr(0.5f);
    s.solver.set_lr_policy("fixed");
    s.update = rule_of(s.solver);
    s.parameters.push_back(test::one_parameter_net(3).parameters.front());
    s.parameters[test::only_parameter].average_momentum = average_momentum;
    s.first_uses = {layer_id{7}};
    s.names = {"fc7"};
    s.arithmetic = std::make_shared<test::plain_arithmetic>();
    s.store = store;
    s.updates = updates;
    store->leave_to(updates);
    shard = sim.spawn<server_shard>("server_shard", std::move(s));
    sim.tell(shard, connect_shard{{{}}, {gather.in}, checkpointer.in});
    store->publish(test::only_parameter, 0);
    sim.tell(shard, install_chunk{c0, version_id{0}});
    sim.settle();
  }
  /// A gradient that stays where it is.
  void gradient(std::uint64_t clock) {
    sim.tell(shard, gradient_arrived{worker_id{0}, c0, clock_id{clock}, {updates, {}}});
    sim.settle();
    store->publish(test::only_parameter, clock + 1);
  }
};

}  // namespace

TEST_CASE("device updates: the shard issues one for each clock and announces its version") {
  shard_alone t;
  CHECK(t.store->copy(0)[0] == std::vector<float>{0, 0, 0});  // none yet: the host's
  t.gradient(0);
  t.gradient(1);
  CHECK(t.updates->rates == std::vector<float>{0.5f, 0.5f});
  REQUIRE(t.gather.got->size() == 2);
  CHECK(t.gather.got->back().version == version_id{2});
  CHECK(t.store->applied(c0) == 2);
  CHECK(t.store->copy(2)[0] == std::vector<float>{2, 2, 2});
  CHECK(t.store->current(test::only_parameter)[0] == 0);  // as it was before the first
  t.store->come_home();
  CHECK(t.store->current(test::only_parameter)[0] == 2);
}

TEST_CASE("device updates: solver state is the device's, in and out") {
  shard_alone t;
  t.sim.tell(t.shard, history_inherited{c0, 0, 0, test::payload_of({5, 6, 7})});
  t.sim.tell(t.shard, copy_history{version_id{0}});
  t.sim.settle();
  CHECK(t.updates->history == std::vector<float>{5, 6, 7});
  REQUIRE(t.checkpointer.got->size() == 1);
  CHECK(floats(t.checkpointer.got->front().values)[2] == 7);
}

TEST_CASE("device updates: a running statistic is kept, not updated") {
  shard_alone t(0.5f);
  t.gradient(0);
  CHECK(t.updates->rates.empty());
  CHECK(t.updates->kept == 0.25f);  // over two passes
}
