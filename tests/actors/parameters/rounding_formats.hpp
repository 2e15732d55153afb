// tests/actors/parameters/rounding_formats.hpp - a test that holds for formats of each kind.
#pragma once
#include "models/value_format.hpp"

#include <doctest/doctest.h>

namespace poseidon {

/// Runs the test that calls it once for each: values that are rounded by themselves, and in blocks.
inline wire_format rounding_format() {
  auto format = wire_format::bfloat16;
  SUBCASE("bfloat16") {}
  SUBCASE("int8") {
    format = wire_format::int8;
  }
  SUBCASE("int4") {
    format = wire_format::int4;
  }
  return format;
}

}  // namespace poseidon
