// tests/actors/membership/ballot_rig.hpp - the ballot boxes of all members of a view, and the letters between them, for tests.
#pragma once
#include "actors/membership/ballot_box.hpp"
#include "tests/actors/membership/seats.hpp"

#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace poseidon::test {

/// A view that is known by its reason.
inline frames::next_view named(const std::string& name, std::uint64_t epoch = 8) {
  frames::next_view out;
  out.epoch = epoch;
  out.why = name;
  return out;
}

/// Members 0 to n-1 of epoch 7, and letters that wait until a test delivers them.
struct ballot_rig {
  struct posted {
    seat_id from, to;
    frame_header what;
  };
  seat_list members;
  std::vector<ballot_box> boxes;
  std::vector<posted> waiting;
  testimonies seen;  // what the last value was made of
  std::vector<testimony> says;
  std::map<std::uint32_t, std::string> told;  // views, by who has heard of one

  explicit ballot_rig(std::uint32_t n) {
    auto seven = named("seven", 7);
    for (std::uint32_t s = 0; s < n; ++s) {
      members.push_back(seat_id{s});
      seven.members.push_back({seat_id{s}, ""});
    }
    for (const auto s : members) {
      boxes.emplace_back(seven, s);
      says.push_back({at_version(40 + value(s)), members, {}});
    }
  }
  ballot_box& operator[](std::uint32_t s) { return boxes[s]; }
  ballot_box::knowledge knows(std::uint32_t s) {
    return {says[s], [this, s](const testimonies& all) -> std::optional<frames::next_view> {
              seen = all;
              return named("of " + std::to_string(s));
            }};
  }
  void send(std::uint32_t from, ballot_box::letters letters) {
    for (auto& l : letters) waiting.push_back({seat_id{from}, l.to, std::move(l.frame)});
  }
  void propose(std::uint32_t s) { send(s, boxes[s].propose(knows(s))); }
  void limit(std::uint32_t s) { send(s, boxes[s].straggler_limit_over(knows(s))); }
  void hear(std::uint32_t to, std::uint32_t from, const frame_header& f) {
    if (const auto* next = std::get_if<frames::next_view>(&f)) told[to] = next->why;
    ballot_box::letters out;
    boxes[to].hear(seat_id{from}, f, knows(to), out);
    send(to, std::move(out));
  }
  /// A promise of `from` to member 0, which proposes; it has accepted `value`, if that has a name.
  frames::view_promise promised(std::uint32_t from, ballot number, ballot accepted = {},
                                const std::string& value = {}) const {
    const auto& t = says[from];
    return {7,    number,         number, accepted, named(value),
            true, *t.stand.whole, false,  t.hears,  t.dead};
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
      hear(value(p.to), value(p.from), p.what);
      ++count;
    }
    return count;
  }
  void deliver_all() {
    while (deliver<frames::view_prepare>(members) + deliver<frames::view_promise>(members) +
               deliver<frames::view_accept>(members) + deliver<frames::view_accepted>(members) +
               deliver<frames::next_view>(members) >
           0) {
    }
  }
  /// Where it has counted the votes, or has been told.
  std::string decided(std::uint32_t s) {
    if (boxes[s].decided()) return boxes[s].decided()->why;
    return told.contains(s) ? told[s] : "nothing";
  }
};

}  // namespace poseidon::test
