#include "actors/run/data_sets.hpp"

#include <doctest/doctest.h>

#include <random>

using namespace poseidon;

namespace {

const std::vector<frames::data_set> of_run = {
    {0, "data", "1x28x28 and one value", 960}, {0, "more", "3", 960}, {1, "data", "3", 100}};

/// What is said of a node that reads `here`; empty: nothing.
std::string refusal_of(const std::vector<frames::data_set>& here, bool own_data = false,
                       bool first_has_own_data = false) {
  run_definition run;
  run.data_sets = of_run;
  run.solver.spec.mutable_poseidon()->set_own_data(first_has_own_data);
  node_spec node;
  node.own_data = own_data;
  try {
    compare_data(here, run, node);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return {};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("data sets: the same data are no reason to refuse a node") {
  CHECK(refusal_of(of_run) == "");
  CHECK(refusal_of({}) == "");  // its device replays times
}

TEST_CASE(
    "data sets: another number of records is refused with both numbers, unless parts are asked "
    "for") {
  for (std::size_t at = 0; at < of_run.size(); ++at)
    for (const std::uint64_t records : {1, 500, 959, 961, 1 << 20}) {
      auto here = of_run;
      here[at].records = records;
      CAPTURE(at);
      for (const bool own : {false, true})
        for (const bool first_own : {false, true}) {
          const auto text = refusal_of(here, own, first_own);
          const bool parts = (own || first_own) && here[at].net == 0;
          CHECK(text.empty() == parts);
          if (parts) continue;
          CHECK(has(text, "layer \"" + here[at].layer + "\" of " +
                              (here[at].net == 0 ? "the train net" : "test net 0")));
          CHECK(has(text, "reads " + std::to_string(records) + " record"));
          CHECK(
              has(text, "and " + std::to_string(of_run[at].records) + " on the run's first node"));
          CHECK(has(text, "--own-data") == (here[at].net == 0));
        }
    }
}

TEST_CASE("data sets: samples of another shape are refused with both, whoever has parts") {
  for (std::size_t at = 0; at < of_run.size(); ++at)
    for (const bool own : {false, true}) {
      auto here = of_run;
      here[at].sample = "3x32x32 and one value";
      const auto text = refusal_of(here, own, own);
      CHECK(has(text, "reads samples of 3x32x32 and one value on this node, and of " +
                          of_run[at].sample + " on the run's first node"));
    }
}
