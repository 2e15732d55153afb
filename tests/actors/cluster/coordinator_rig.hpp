// tests/actors/cluster/coordinator_rig.hpp - a coordinator of three members, and what its node hears of it.
#pragma once
#include "actors/cluster/coordinator.hpp"
#include "tests/sim.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
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
struct coordinator_rig {
  test::sim sim;
  probe<view_agreed> view = sim.listen<view_agreed>();
  probe<everyone_ready> ready = sim.listen<everyone_ready>();
  probe<everyone_done> done = sim.listen<everyone_done>();
  probe<hold_everyone> hold = sim.listen<hold_everyone>();
  probe<drain_agreed> agreed = sim.listen<drain_agreed>();
  probe<everyone_drained> drained = sim.listen<everyone_drained>();
  probe<everyone_leaves> leaves = sim.listen<everyone_leaves>();
  probe<others_wait> others = sim.listen<others_wait>();
  handle<coordinator> it;

  explicit coordinator_rig(bool begin = true, coordinator_setup setup = {3, members_of_seats({0})})
      : it(sim.spawn<coordinator>("coordinator", std::move(setup))) {
    tell(connect_coordinator{view.in, ready.in, done.in, hold.in, agreed.in, drained.in, leaves.in,
                             others.in});
    if (!begin) return;
    tell(member_joined{member_of_seat(1)});
    tell(member_joined{member_of_seat(2)});
    all_are_ready({0, 1, 2});
    tell(everyone_began{});
  }
  template <class M>
  void tell(M m) {
    sim.tell(it, std::move(m));
    sim.settle();
  }
  /// For the view that was told last.
  void all_are_ready(std::initializer_list<std::uint32_t> seats) {
    const auto epoch = drained.got->empty() ? 1 : drained.got->back().epoch;
    for (const auto s : seats) tell(member_is_ready{seat_id{s}, epoch});
  }
  void stands(std::uint32_t seat, std::uint64_t clock, bool drained_ = false) {
    tell(member_paused{seat_id{seat}, clock_id{clock}, drained_});
  }
  void all_hold(std::initializer_list<std::uint32_t> seats, std::uint64_t clock) {
    for (const auto s : seats) stands(s, clock);
  }
  void all_drain(std::initializer_list<std::uint32_t> seats, std::uint64_t clock) {
    for (const auto s : seats) stands(s, clock, true);
  }
  void newcomer(std::uint32_t seat) { tell(newcomer_ready{member_of_seat(seat)}); }
  void leave(std::initializer_list<std::uint32_t> seats) {
    for (const auto s : seats) tell(member_leaves{seat_id{s}});
    sim.advance(std::chrono::milliseconds{200});
  }
};

}  // namespace poseidon::test
