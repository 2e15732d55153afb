#include "models/solver/outer_steps.hpp"

#include "models/solver/solver_file.hpp"
#include "models/spec/spec_file.hpp"

#include <doctest/doctest.h>
#include <google/protobuf/text_format.h>

#include <vector>

using namespace poseidon;

namespace {

::caffe::SolverParameter solver_of(const std::string& text) {
  ::caffe::SolverParameter solver;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(
      "base_lr: 0.1 lr_policy: 'step' gamma: 0.5 stepsize: 7 momentum: 0.9 weight_decay: 0.01 "
      "max_iter: 40 type: 'Adam' " +
          text,
      &solver));
  return solver;
}

std::string refusal_of(const std::string& text) {
  try {
    check_outer_steps(solver_of(text));
    return {};
  } catch (const spec_error& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("outer steps: the defaults are the safe rule for few iterations, and another for many") {
  CHECK_FALSE(outer_rule_of(solver_of("")));
  const auto few = outer_rule_of(solver_of("poseidon { outer_steps: 10 }")).value();
  CHECK(few.every == 10);
  CHECK(few.rate == 1);
  CHECK(few.momentum == 0);
  const auto many = outer_rule_of(solver_of("poseidon { outer_steps: 11 }")).value();
  CHECK(many.rate == 0.7f);
  CHECK(many.momentum == 0.5f);
  CHECK(many.nesterov);
  const auto told = outer_rule_of(solver_of("poseidon { outer_steps: 20 outer_rate: 0.5 "
                                            "outer_momentum: 0 outer_nesterov: false }"))
                        .value();
  CHECK(told.rate == 0.5f);
  CHECK(told.momentum == 0);
  CHECK_FALSE(told.nesterov);
}

TEST_CASE("outer steps: a clock is so many iterations, and what lies between two has none") {
  const auto solver = solver_of("poseidon { outer_steps: 8 }");
  CHECK(iterations_per_clock(solver_of("")) == 1);
  CHECK(iterations_per_clock(solver) == 8);
  CHECK(iteration_of(solver, 3) == 24);
  CHECK(clocks_of(solver, 40) == 5);
  CHECK(clocks_of(solver, -1) == 0);
  CHECK(clock_at(solver, 16, "iteration") == 2);
  CHECK_THROWS_WITH_AS((void)clock_at(solver, 20, "--views: iteration"),
                       "--views: iteration 20 lies within an outer step of 8 iterations "
                       "(outer_steps). It must be a multiple of them.",
                       spec_error);
}

TEST_CASE(
    "outer steps: what nodes update together follows the outer rule, whatever the solver's is") {
  CHECK(shared_rule_of(solver_of("")).kind == rule_kind::adam);
  CHECK(shared_rule_of(solver_of("poseidon { outer_steps: 4 }")).kind == rule_kind::sgd);
  const auto solver = solver_of("poseidon { outer_steps: 20 warmup_iter: 9 lr_policy: 'cosine' }");
  const auto rule = shared_rule_of(solver);
  CHECK(rule.kind == rule_kind::nesterov);
  CHECK(rule.momentum == 0.5f);
  CHECK(shared_rule_of(solver_of("poseidon { outer_steps: 20 outer_nesterov: false }")).kind ==
        rule_kind::sgd);
  net_parameter p;
  p.lr_mult = 2;
  p.decay_mult = 3;
  const auto step = step_of(solver_of_outer_steps(solver), in_outer_steps(p), 5, 0.25f);
  CHECK(step.rate == 0.7f);
  CHECK(step.decay == 0);
  CHECK(step.scale == 0.25f);
  p.lr_mult = 0;
  CHECK_FALSE(is_learned(in_outer_steps(p)));
}

TEST_CASE(
    "outer steps: a node's gradient is what it has moved, and its part of a statistic's change") {
  const std::vector<float> anchor{1, 2, -4};
  std::vector<float> own{0.5f, 2, -8};
  replace_by_gradient(anchor, own);
  CHECK(own == std::vector<float>{0.5f, 0, 4});
  own = {3, 2, -8};
  replace_by_change(anchor, 0.25f, own);
  CHECK(own == std::vector<float>{0.5f, 0, -1});
  std::vector<float> none;
  replace_by_gradient({}, none);
  CHECK(none.empty());
}

TEST_CASE("outer steps: what does not fit is refused with both values") {
  CHECK(refusal_of("poseidon { outer_steps: 8 } test_interval: 16 snapshot: 8") == "");
  CHECK(refusal_of("poseidon { outer_steps: 7 }") ==
        "max_iter is 40, which is no multiple of outer_steps, 7: between two outer steps each node "
        "has parameters of its own. Choose 35 or 42, or other outer_steps.");
  CHECK(refusal_of("poseidon { outer_steps: 8 } test_interval: 5")
            .find("test_interval is 5, which is no multiple of outer_steps, 8") == 0);
  CHECK(refusal_of("poseidon { outer_steps: 8 } test_interval: 5").find("Choose 8,") !=
        std::string::npos);
  CHECK(refusal_of("poseidon { outer_steps: 8 } snapshot: 12").find("snapshot is 12") == 0);
  CHECK(refusal_of("poseidon { outer_rate: 1 }").find("outer_rate is given without outer_steps") ==
        0);
  CHECK(refusal_of("poseidon { outer_steps: 8 outer_rate: 0 }").find("outer_rate is 0") == 0);
  CHECK(refusal_of("poseidon { outer_steps: 8 outer_momentum: 1 }").find("outer_momentum is 1") ==
        0);
  CHECK(refusal_of("poseidon { outer_steps: 200000 }").find("outer_steps is 200000") == 0);
  const std::string does_not_go = "poseidon { outer_steps: 8 } does not go with ";
  CHECK(refusal_of("poseidon { outer_steps: 8 staleness: 2 }")
            .find(does_not_go + "staleness, which is 2") == 0);
  CHECK(refusal_of("poseidon { outer_steps: 8 } clip_gradients: 35")
            .find(does_not_go + "clip_gradients, which is 35") == 0);
  CHECK(
      refusal_of("poseidon { outer_steps: 8 } debug_info: true").find(does_not_go + "debug_info") ==
      0);
}
