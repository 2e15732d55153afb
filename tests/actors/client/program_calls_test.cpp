#include "actors/client/program_calls.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

TEST_CASE(
    "program_calls: a program is away from its last call on, unless one of its threads waits") {
  using std::chrono::seconds;
  program_calls calls;
  const auto now = program_calls::clock::now() + seconds(100);
  CHECK_FALSE(calls.away(now));  // it has not called yet
  calls.note(now);
  CHECK(calls.away(now + seconds(3)) == seconds(3));
  {
    const program_calls::waits waits(calls);
    CHECK(calls.some_wait());
    CHECK_FALSE(calls.away(now + seconds(3)));
  }
  CHECK_FALSE(calls.some_wait());
  CHECK(calls.away(now).value() >= seconds(99));  // that it has waited was its last call
}
