// Which gradients of a program its node hears of at once, and which with the next ones.
#include "actors/client/push_batch.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {

gradients_lent::gradient of(unsigned parameter) {
  return {parameter_id{parameter}, clock_id{0}};
}

const push_batch::time start{};

}  // namespace

TEST_CASE("push_batch: small gradients wait for the last one of the clock, and keep their order") {
  push_batch b(3);
  for (int clock = 0; clock < 2; ++clock) {
    CHECK(!b.add(of(2), 4, start));
    CHECK(!b.add(of(0), 4, start));
    CHECK(b.add(of(1), 4, start));
    const auto told = b.take().gradients;
    REQUIRE(told.size() == 3);
    CHECK(told[0].parameter == parameter_id{2});
    CHECK(told[1].parameter == parameter_id{0});
    CHECK(told[2].parameter == parameter_id{1});
    CHECK(b.take().gradients.empty());
  }
}

TEST_CASE("push_batch: much, many and old ones are told at once") {
  push_batch b(1000);
  CHECK(b.add(of(0), push_batch::most_bytes, start));
  CHECK(b.take().gradients.size() == 1);
  CHECK(!b.add(of(1), push_batch::most_bytes - 4, start));
  CHECK(b.add(of(2), 4, start));
  CHECK(b.take().gradients.size() == 2);
  for (unsigned i = 1; i < push_batch::most; ++i) CHECK(!b.add(of(i), 0, start));
  CHECK(b.add(of(0), 0, start));
  CHECK(b.take().gradients.size() == push_batch::most);
  CHECK(!b.add(of(1), 4, start));
  CHECK(b.add(of(2), 4, start + push_batch::most_age));
  CHECK(b.take().gradients.size() == 2);
  CHECK(!b.add(of(3), 4, start + push_batch::most_age));  // age counts from the first that waits
}
