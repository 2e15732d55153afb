#include "models/spec/spec_kind.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {

spec_kind kind(const char* text) {
  return kind_of_spec(outer_fields(text));
}

}  // namespace

TEST_CASE(
    "spec_kind: a solver with its net inside is a solver, though its lines begin with layers") {
  CHECK(kind("net_param {\n  layer {\n    name: \"a\"\n  }\n}\nbase_lr: 0.1\n") ==
        spec_kind::solver);
  CHECK(kind("net: \"a.prototxt\" max_iter: 10") == spec_kind::solver);
  CHECK(kind("name: \"x\"\nlayer { name: \"net\" }\n") == spec_kind::net);
  CHECK(kind("# net: \"a\"\nlayers { type: DATA }") == spec_kind::net);
  CHECK(kind("input: \"data\"") == spec_kind::net);
  CHECK(kind("batch: 64 layer { name: \"a\" }") == spec_kind::profile);
  CHECK(kind("ip1 sfb\n") == spec_kind::other);
  CHECK(kind("\"net:") == spec_kind::other);
}
