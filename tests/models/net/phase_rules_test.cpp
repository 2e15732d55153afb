#include "models/net/net_builder.hpp"
#include "tests/models/nets.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {
/// Does a layer with these rules exist in this state?
bool exists(const std::string& rules, const net_state& state) {
  return filter_net(parse_net(test::layer("a", "ReLU", "", "", rules), "f"), state)
             .spec.layer_size() == 1;
}
const net_state train{::caffe::TRAIN, 0, {}};
}  // namespace

TEST_CASE(
    "phase_rules: a layer without rules is always there, and a rule without fields always holds") {
  CHECK(exists("", train));
  CHECK(exists("include { }", train));
  CHECK_FALSE(exists("exclude { }", train));
}

TEST_CASE(
    "phase_rules: all fields of a rule must hold, one include rule is enough, one exclude rule "
    "too") {
  CHECK(exists("include { phase: TRAIN }", train));
  CHECK_FALSE(exists("include { phase: TEST }", train));
  CHECK_FALSE(exists("include { phase: TRAIN min_level: 1 }", train));
  CHECK(exists("include { phase: TEST } include { max_level: 0 }", train));
  CHECK_FALSE(exists("exclude { phase: TEST } exclude { max_level: 0 }", train));
}

TEST_CASE("phase_rules: a rule needs all of its stages and none of its not_stages") {
  const net_state deep{::caffe::TRAIN, 0, {"deep", "wide"}};
  CHECK(exists("include { stage: \"deep\" stage: \"wide\" }", deep));
  CHECK_FALSE(exists("include { stage: \"deep\" stage: \"tall\" }", deep));
  CHECK_FALSE(exists("include { not_stage: \"tall\" not_stage: \"deep\" }", deep));
  CHECK(exists("include { not_stage: \"tall\" }", deep));
}

TEST_CASE("phase_rules: include and exclude in one layer are refused") {
  CHECK(test::mistake(test::layer("a", "ReLU", "", "", "include { } exclude { }")) ==
        "net.prototxt:1: layer \"a\" (ReLU): it has include and exclude rules. Use one kind only.");
}
