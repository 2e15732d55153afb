#include "cpu/fingerprint.hpp"

#include "cpu/cpu_device.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace poseidon;

TEST_CASE(
    "fingerprint: the same machine has the same one, and says all that kernels are chosen by") {
  const auto one = make_cpu_device()->traits();
  CHECK(one == make_cpu_device()->traits());
  for (const auto name : {trait_names::device, trait_names::instructions, trait_names::caches,
                          trait_names::onednn, trait_names::c_library}) {
    const auto at =
        std::find_if(one.begin(), one.end(), [&](const auto& t) { return t.name == name; });
    REQUIRE(at != one.end());
    CHECK(!at->value.empty());
  }
  // A release and what a program adds have to fit, too.
  CHECK(encode(one).size() < max_fingerprint_bytes - 400);
}

TEST_CASE("fingerprint: functions of the C library are told one by one") {
  const auto values = cpu::values_of_c_library();
  CHECK(values == cpu::values_of_c_library());
  for (const auto* const name : {"expf:", "logf:", "powf:", "exp:", "log:", "pow:", "cos:"})
    CHECK(values.find(name) != std::string::npos);
}
