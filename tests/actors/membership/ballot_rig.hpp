// tests/actors/membership/ballot_rig.hpp - the ballot boxes of all members of a view, and the letters between them, for tests.
#pragma once
#include "actors/membership/ballot_box.hpp"
#include "tests/actors/membership/seats.hpp"

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace poseidon::test {

using view_name = std::shared_ptr<const std::string>;  // as the product, which shares views
using name_box = ballot_box<view_name>;

inline view_name named(const std::string& name) {
  return std::make_shared<const std::string>(name);
}

/// Members 0 to n-1 of epoch 7, and letters that wait until a test delivers them.
struct ballot_rig {
  struct posted {
    seat_id from, to;
    name_box::message what;
  };
  seat_list members;
  std::vector<name_box> boxes;
  std::vector<posted> waiting;
  testimonies seen;  // what the last value was made of
  std::vector<testimony> says;

  explicit ballot_rig(std::uint32_t n) {
    for (std::uint32_t s = 0; s < n; ++s) members.push_back(seat_id{s});
    for (const auto s : members) {
      boxes.emplace_back(7, s, members, named("seven"));
      says.push_back({at_version(40 + value(s)), members, {}});
    }
  }
  name_box& operator[](std::uint32_t s) { return boxes[s]; }
  name_box::knowledge knows(std::uint32_t s) {
    return {says[s], [this, s](const testimonies& all) -> std::optional<view_name> {
              seen = all;
              return named("of " + std::to_string(s));
            }};
  }
  void send(std::uint32_t from, name_box::letters letters) {
    for (auto& l : letters) waiting.push_back({seat_id{from}, l.to, std::move(l.what)});
  }
  void propose(std::uint32_t s) { send(s, boxes[s].propose(knows(s))); }
  void limit(std::uint32_t s) { send(s, boxes[s].straggler_limit_over(knows(s))); }
  name_box::hearing hear(std::uint32_t to, std::uint32_t from, const name_box::message& m) {
    name_box::letters out;
    const auto heard = boxes[to].hear(seat_id{from}, m, knows(to), out);
    send(to, std::move(out));
    return heard;
  }
  /// Delivers all letters of one kind between these, in the order in which they were sent. Returns  how many.
  template <class M>
  std::size_t deliver(const seat_list& among) {
    std::size_t count = 0;
    for (auto all = std::exchange(waiting, {}); auto& p : all) {
      const bool now =
          std::holds_alternative<M>(p.what) && has_seat(among, p.from) && has_seat(among, p.to);
      if (!now) {
        waiting.push_back(p);
        continue;
      }
      (void)hear(value(p.to), value(p.from), p.what);
      ++count;
    }
    return count;
  }
  void deliver_all() {
    while (deliver<name_box::prepare>(members) + deliver<name_box::promise>(members) +
               deliver<name_box::accept>(members) + deliver<name_box::accepted>(members) +
               deliver<name_box::chosen>(members) >
           0) {
    }
  }
  std::string decided(std::uint32_t s) {
    return boxes[s].decided() ? **boxes[s].decided() : "nothing";
  }
};

}  // namespace poseidon::test
