#include "apps/terminal/run_meter.hpp"

#include <doctest/doctest.h>

using namespace poseidon;
using poseidon::app::run_meter;

namespace {

progress::iteration at(std::uint64_t images, std::uint64_t communication_ns,
                       std::uint64_t exposed_ns) {
  progress::iteration i;
  i.images = images;
  i.communication_ns = communication_ns;
  i.exposed_ns = exposed_ns;
  return i;
}

}  // namespace

TEST_CASE("run_meter: rates are those of the interval") {
  run_meter m(2);
  const run_meter::time_point start{};
  m.stepped({0, 10, 0, 0, 0}, start);
  CHECK(m.trained(at(100, 80, 20), start + std::chrono::seconds{2}).images_s == 50);
  const auto next = m.trained(at(400, 180, 45), start + std::chrono::seconds{3});
  CHECK(next.images_s == 300);
  REQUIRE(next.hidden);
  CHECK(*next.hidden == 0.75);
}

TEST_CASE("run_meter: counts that fall, as after a loss, are no rate") {
  run_meter m(2);
  const run_meter::time_point start{};
  m.stepped({0, 10, 0, 0, 0}, start);
  (void)m.trained(at(100, 80, 20), start + std::chrono::seconds{2});
  const auto again = m.trained(at(90, 10, 5), start + std::chrono::seconds{3});
  CHECK(again.images_s == 50);  // as before
  CHECK(!again.hidden);
  const auto next = m.trained(at(120, 30, 10), start + std::chrono::seconds{4});
  CHECK(next.images_s == 30);
  REQUIRE(next.hidden);
  CHECK(*next.hidden == 0.75);
}
