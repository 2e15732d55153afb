#include "actors/core/overlap_meter.hpp"

#include <doctest/doctest.h>

namespace poseidon {
namespace {

TEST_CASE("overlap_meter: updates that overlap in time are counted once") {
  overlap_meter m(1);
  m.began(100);
  m.began(110);
  m.ended(150);
  m.ended(170);
  CHECK(m.read(170).communication_ns == 70);
  m.began(1000);
  CHECK(m.read(1020).communication_ns == 90);  // one is under way
  m.ended(1030);
  CHECK(m.read(5000).communication_ns == 100);
  CHECK(m.read(5000).exposed_ns == 0);
}

TEST_CASE("overlap_meter: what is exposed is the mean over the streams") {
  overlap_meter m(2);
  m.began(0);
  m.stood_still(30);
  m.stood_still(10);
  m.ended(100);
  CHECK(m.read(100).communication_ns == 100);
  CHECK(m.read(100).exposed_ns == 20);
}

TEST_CASE("overlap_meter: an update that a lost view has left under way ends with it") {
  overlap_meter m(1);
  m.began(100);
  m.stood_still(5);
  m.begin_anew();
  CHECK(m.read(1000).communication_ns == 0);
  CHECK(m.read(1000).exposed_ns == 0);
  m.began(2000);
  m.ended(2010);
  CHECK(m.read(9000).communication_ns == 10);
}

}  // namespace
}  // namespace poseidon
