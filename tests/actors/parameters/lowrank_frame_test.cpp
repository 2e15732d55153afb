#include "actors/parameters/lowrank_frame.hpp"

#include "messages/float_payload.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace poseidon;

TEST_CASE(
    "lowrank_frame: P is rounded to 16 bits, what goes beside it is not; not finite stays so") {
  const float third = 1.0f / 3;
  const std::vector<float> values{1,
                                  -third,
                                  std::numeric_limits<float>::infinity(),
                                  std::numeric_limits<float>::quiet_NaN(),
                                  third,
                                  1e-30f};
  for (const std::size_t rounded : {std::size_t{0}, std::size_t{4}, std::size_t{6}}) {
    CAPTURE(rounded);
    const auto packed = pack_lowrank(values, rounded);
    CHECK(packed.bytes.size() == 2 * rounded + 4 * (6 - rounded));
    const auto back = unpack_lowrank(packed, rounded);
    const auto got = floats(back);
    REQUIRE(got.size() == 6);
    CHECK(got[0] == 1);
    CHECK((got[1] == -third) == (rounded == 0));
    CHECK(std::abs(got[1] + third) < 0.002f);
    CHECK(std::isinf(got[2]));
    CHECK(std::isnan(got[3]));
    CHECK((got[4] == third) == (rounded < 5));
    CHECK((got[5] == 1e-30f) == (rounded < 6));
    // What was rounded once is not rounded again.
    const auto twice = unpack_lowrank(pack_lowrank({got.begin(), got.end()}, rounded), rounded);
    CHECK(floats(twice)[1] == got[1]);
  }
}

TEST_CASE("lowrank_frame: an empty one stays empty") {
  CHECK(pack_lowrank({}, 0).bytes.empty());
  CHECK(unpack_lowrank(pack_lowrank({}, 0), 0).bytes.empty());
}
