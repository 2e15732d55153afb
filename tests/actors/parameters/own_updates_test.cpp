#include "actors/parameters/own_updates.hpp"

#include "tests/actors/fakes.hpp"

#include <doctest/doctest.h>
#include <google/protobuf/text_format.h>

#include <algorithm>

using namespace poseidon;

namespace {

/// fresh = values - history - gradient, and history becomes its value and t: both can be seen in what follows.
class counting_arithmetic : public test::plain_arithmetic {
 public:
  void update(const solver_rule&, const rule_step& step, std::span<const float> gradient,
              std::span<const float> values, std::span<float> fresh,
              std::span<const state_array> history, value_checksum*) const override {
    steps.push_back(step);
    for (std::size_t i = 0; i < values.size(); ++i) {
      fresh[i] = values[i] - history[0].before[i] - gradient[i];
      history[0].after[i] = history[0].before[i] + 1;
    }
  }
  mutable std::vector<rule_step> steps;
};

/// One parameter of 4 values, two nodes, three iterations in a clock.
struct one_parameter {
  std::shared_ptr<parameter_store> store = test::one_parameter_store(4, 2, 2, 0);
  std::shared_ptr<counting_arithmetic> arithmetic = std::make_shared<counting_arithmetic>();
  std::shared_ptr<own_updates> own;

  explicit one_parameter(std::optional<float> average_momentum = std::nullopt) {
    own_updates_setup s;
    s.store = store;
    auto& p = s.parameters.emplace_back();
    p.name = "fc/0";
    p.shape = {4};
    p.lr_mult = 2;
    p.average_momentum = average_momentum;
    REQUIRE(google::protobuf::TextFormat::ParseFromString(
        "base_lr: 0.5 lr_policy: 'multistep' gamma: 0.5 stepvalue: 5 max_iter: 9 "
        "poseidon { outer_steps: 3 }",
        &s.solver));
    s.arithmetic = arithmetic;
    s.scale = 0.25f;
    s.passes = 2;
    own = std::make_shared<own_updates>(std::move(s));
  }
  void anchor(std::uint64_t version, float value) {
    std::ranges::fill(store->values(test::only_parameter, version), value);
    store->publish(test::only_parameter, version);
  }
  void begin(std::uint64_t clock, std::uint32_t index = 0) {
    own->begin(test::only_parameter, {clock_id{clock}, index, 0});
  }
  void update(std::uint64_t clock, std::uint64_t iteration, float gradient) {
    own->update(test::only_parameter, clock, iteration, std::vector<float>(4, gradient));
  }
  /// Clock `clock` as a whole, with three iterations of this gradient. Returns  what the first value has moved.
  float train(std::uint64_t clock, float gradient) {
    begin(clock);
    for (std::uint64_t i = 0; i < 3; ++i) update(clock, i, gradient);
    own->finish(test::only_parameter, clock, 2);
    return own->moved(test::only_parameter)[0];
  }
  [[nodiscard]] float read() const { return *own->view(test::only_parameter).values.load(); }
};

}  // namespace

TEST_CASE("own_updates: kernels read the anchor first, then this node's own values") {
  one_parameter t;
  t.anchor(0, 10);
  t.begin(0);
  CHECK(t.read() == 10);
  const auto packed = t.own->view(test::only_parameter).version.load();
  t.update(0, 0, 1);
  CHECK(t.read() == 9);
  CHECK(t.own->view(test::only_parameter).version.load() != packed);
  t.begin(0, 2);  // a later pass of the clock
  CHECK(t.read() == 9);
  t.update(0, 1, 1);
  CHECK(t.read() == 7);
  CHECK(t.store->values(test::only_parameter, 0)[3] == 10);
}

TEST_CASE("own_updates: what a node sends is what it has moved from the anchor") {
  one_parameter t;
  t.anchor(0, 10);
  CHECK(t.train(0, 1) == 3 + 0 + 1 + 2);
  moved_parameters sent(t.own, {test::only_parameter});
  CHECK(sent.total(0, 0).data() == t.own->moved(test::only_parameter).data());
  t.anchor(1, 8);
  t.begin(1);
  CHECK(t.read() == 8);
}

TEST_CASE("own_updates: rates count iterations, and the rule's t those since its state was zero") {
  one_parameter t;
  t.own->begin_at(1);
  t.anchor(1, 0);
  t.train(1, 0);
  REQUIRE(t.arithmetic->steps.size() == 3);
  CHECK(t.arithmetic->steps[1].rate == 0.5f * 2);   // iteration 4
  CHECK(t.arithmetic->steps[2].rate == 0.25f * 2);  // iteration 5
  CHECK(t.arithmetic->steps[0].iteration == 0);
  CHECK(t.arithmetic->steps[2].iteration == 2);
  CHECK(t.arithmetic->steps[0].scale == 0.25f);
}

TEST_CASE("own_updates: a clock that is trained again begins with the state that it began with") {
  one_parameter t;
  t.anchor(0, 0);
  CHECK(t.train(0, 1) == 6);
  t.anchor(1, 0);
  CHECK(t.train(1, 1) == 3 + 3 + 4 + 5);
  t.anchor(2, 0);
  t.begin(2);
  t.update(2, 0, 1);  // a member is lost meanwhile, and no other one has version 2
  t.store->go_back(1);
  CHECK(t.train(1, 2) == 6 + 3 + 4 + 5);
  t.anchor(2, 0);
  CHECK(t.train(2, 0) == 6 + 7 + 8);
}

TEST_CASE("own_updates: the state outlives the net that is compiled again") {
  one_parameter t, later;
  t.own->begin_at(0);
  t.anchor(0, 0);
  t.train(0, 0);
  later.own->take_state(t.own->release_state());
  later.anchor(1, 0);
  CHECK(later.train(1, 0) == 3 + 4 + 5);
  CHECK(later.arithmetic->steps[0].iteration == 3);
}

TEST_CASE("own_updates: of a running statistic each node sends its part of the mean change") {
  one_parameter t(0.5f);
  t.anchor(0, 16);
  t.begin(0);
  t.update(0, 0, 1);  // two passes: a quarter is left of the value
  CHECK(t.read() == 5);
  t.own->finish(test::only_parameter, 0, 2);
  CHECK(t.own->moved(test::only_parameter)[0] == (5 - 16) / 2.0f);
}
