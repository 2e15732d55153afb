// tests/actors/membership/seats.hpp - short forms for tests of what members decide: seats({0, 2}), at_version(7).
#pragma once
#include "actors/membership/view_rules.hpp"

#include <initializer_list>

namespace poseidon::test {

inline seat_list seats(std::initializer_list<std::uint32_t> numbers) {
  seat_list out;
  for (const auto n : numbers) out.push_back(seat_id{n});
  return out;
}

inline node_stand at_version(std::uint64_t whole, bool drained = false) {
  return {version_id{whole}, drained};
}

}  // namespace poseidon::test
