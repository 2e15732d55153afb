// tests/number_asked.hpp - how long a test goes on that can go on for hours.
#pragma once
#include <cstdint>
#include <cstdlib>

namespace poseidon::test {

/// The environment's word for it, and else `otherwise`.
inline std::uint64_t number_asked(const char* variable, std::uint64_t otherwise) {
  const char* asked = std::getenv(variable);
  return asked != nullptr ? std::strtoull(asked, nullptr, 10) : otherwise;
}

}  // namespace poseidon::test
