#include "models/solver/goals.hpp"

#include "models/spec/spec_file.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {

template <class Parse>
std::string mistake(Parse parse, const std::string& text) {
  try {
    (void)parse(text);
    return {};
  } catch (const spec_error& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("goals: the words of keep_best") {
  CHECK(parse_keep_best("accuracy").output == "accuracy");
  CHECK(parse_keep_best("accuracy").than == better::by_kind);
  CHECK(parse_keep_best("error=min").than == better::less);
  CHECK(parse_keep_best("gain=max").output == "gain");
  CHECK(parse_keep_best("gain=max").than == better::more);
  CHECK(mistake(parse_keep_best, "error=least").find("keep_best \"error=least\" names no") == 0);
  CHECK(mistake(parse_keep_best, "=min").find("keep_best \"=min\" names no output") == 0);
}

TEST_CASE("goals: the words of stop_at") {
  const auto goal = parse_stop_at("accuracy=0.99");
  CHECK(goal.output == "accuracy");
  CHECK(goal.than == better::by_kind);
  CHECK(goal.value == 0.99);
  CHECK(parse_stop_at("loss<=1e-2").output == "loss");
  CHECK(parse_stop_at("loss<=1e-2").than == better::less);
  CHECK(parse_stop_at("prob[3]>=0.5").output == "prob[3]");
  CHECK(parse_stop_at("prob[3]>=0.5").than == better::more);
  for (const std::string text : {"accuracy", "=0.5", ">=0.5", "accuracy=", "accuracy=99%",
                                 "accuracy=nan", "accuracy=inf", "accuracy=0.9 0.8"})
    CHECK(mistake(parse_stop_at, text).find("stop_at \"" + text + "\"") == 0);
}

TEST_CASE("goals: a solver without tests cannot reach one") {
  ::caffe::SolverParameter solver;
  CHECK_NOTHROW(check_goals(solver));
  solver.mutable_poseidon()->set_stop_at("accuracy=0.9");
  CHECK_THROWS_AS(check_goals(solver), spec_error);
  solver.add_test_iter(1);
  CHECK_THROWS_AS(check_goals(solver), spec_error);
  solver.set_test_interval(10);
  CHECK_NOTHROW(check_goals(solver));
}
