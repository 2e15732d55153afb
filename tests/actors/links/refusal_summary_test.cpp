#include "actors/links/refusal_summary.hpp"

#include <doctest/doctest.h>

using namespace poseidon;
using std::chrono::seconds;

namespace {
constexpr refusal_summary::time_point start{};
}

TEST_CASE("refusal_summary: the first line at once, a flood in one line every ten seconds") {
  refusal_summary r;
  CHECK(r.add("10.0.0.9", "one", start) == "one");
  for (int i = 0; i < 5000; ++i) CHECK(!r.add("10.0.0.9", "more", start + seconds{1}));
  CHECK(!r.add("10.0.0.8", "the last", start + seconds{2}));
  CHECK(!r.due(start + seconds{9}));
  CHECK(r.due(start + seconds{10}) ==
        "5001 more connections in 10 s, 5000 of them from 10.0.0.9; the last one: the last");
  CHECK(!r.due(start + seconds{30}));
  CHECK(r.add("10.0.0.9", "again", start + seconds{40}) == "again");
}

TEST_CASE("refusal_summary: a second line soon after the first comes as it is, only later") {
  refusal_summary r;
  CHECK(r.add("10.0.0.9", "one", start));
  CHECK(!r.add("10.0.0.9", "two", start + seconds{1}));
  CHECK(r.due(start + seconds{10}) == "two");
  CHECK(!r.due(start + seconds{21}));
}
