// tests/actors/membership/plan_rig.hpp - the plan of a leader of three members, and all that it has asked for.
#pragma once
#include "actors/membership/view_plan.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace poseidon::test {

inline frames::member member_of_seat(std::uint32_t seat) {
  return {seat_id{seat}, "host" + std::to_string(seat) + ":1"};
}

inline std::vector<frames::member> members_of_seats(std::initializer_list<std::uint32_t> seats) {
  std::vector<frames::member> out;
  for (const auto s : seats) out.push_back(member_of_seat(s));
  return out;
}

/// Three members, of seats 0, 1 and 2, that stand: all have been told to train.
struct plan_rig {
  view_plan it;
  std::vector<plan::action> said;

  explicit plan_rig(bool begin = true, view_plan_setup setup = {3, members_of_seats({0})})
      : it(std::move(setup)) {
    if (!begin) return;
    joined(1);
    joined(2);
    all_are_ready({0, 1, 2});
    it.began();
    hear();
  }
  /// What the plan has asked for so far, of one kind.
  template <class A>
  std::vector<A> all() {
    hear();
    std::vector<A> out;
    for (const auto& a : said)
      if (const auto* one = std::get_if<A>(&a)) out.push_back(*one);
    return out;
  }
  template <class A>
  std::size_t count() {
    return all<A>().size();
  }
  template <class A>
  A last() {
    const auto some = all<A>();
    REQUIRE(!some.empty());
    return some.back();
  }
  std::vector<plan::propose_view> proposed() { return all<plan::propose_view>(); }

  void joined(std::uint32_t seat) { it.joined(member_of_seat(seat)); }
  /// For the view that was told last.
  void all_are_ready(std::initializer_list<std::uint32_t> seats) {
    const auto told = proposed();
    for (const auto s : seats) it.ready(seat_id{s}, told.empty() ? 1 : told.back().epoch);
  }
  void all_hold(std::initializer_list<std::uint32_t> seats, std::uint64_t clock) {
    for (const auto s : seats) it.holds(seat_id{s}, clock_id{clock});
  }
  void all_drain(std::initializer_list<std::uint32_t> seats, std::uint64_t clock) {
    for (const auto s : seats) it.drained(seat_id{s}, clock_id{clock});
  }
  void newcomer(std::uint32_t seat) { it.newcomer_ready(member_of_seat(seat)); }
  /// They say so, and the moment in which others could is over.
  void leave(std::initializer_list<std::uint32_t> seats) {
    const auto before = count<plan::collect_leavers>();
    for (const auto s : seats) it.leaves(seat_id{s});
    if (count<plan::collect_leavers>() > before)
      it.leavers_collected(last<plan::collect_leavers>().epoch);
  }

 private:
  void hear() {
    while (auto a = it.take_action()) said.push_back(std::move(*a));
  }
};

}  // namespace poseidon::test
