// tests/actors/cluster/view_states.hpp - the states of a search, 20 bytes each: equal nodes, posts and surroundings are kept once.
#pragma once
#include "tests/actors/cluster/view_model.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <vector>

namespace poseidon::view_model {

inline constexpr std::size_t three = 3;
inline constexpr seat_mask all_three = 7;

/// What is not a node's own: who is dead or asleep, who does not hear whom, and counters.
struct surroundings {
  std::uint8_t dead = 0, asleep = 0, sleeps = 0, cuts = 0;
  std::array<std::uint8_t, three> deaf{};         // by node: whom it does not hear
  std::array<std::uint8_t, 3> made{}, ballots{};  // by epoch
  auto operator<=>(const surroundings&) const = default;
};

struct state {
  std::array<std::uint32_t, three> nodes{};
  std::uint32_t posts = 0, around = 0;
  bool operator==(const state&) const = default;
};

inline std::size_t hash_of(const state& s) {
  std::uint64_t h = 0x9e3779b97f4a7c15;
  for (const std::uint64_t x : {s.nodes[0], s.nodes[1], s.nodes[2], s.posts, s.around}) {
    h = (h ^ x) * 0xff51afd7ed558ccd;
    h ^= h >> 32;
  }
  return h;
}

/// A number for each value.
template <class T>
class numbered {
 public:
  std::uint32_t number(const T& v) {
    const auto [at, added] = numbers_.emplace(v, static_cast<std::uint32_t>(values_.size()));
    if (added) values_.push_back(&at->first);
    return at->second;
  }
  const T& operator[](std::uint32_t n) const { return *values_[n]; }
  std::size_t size() const { return values_.size(); }

 private:
  std::map<T, std::uint32_t> numbers_;
  std::vector<const T*> values_;
};

/// States in the order in which they were found.
class state_set {
 public:
  /// False: it is there already.
  bool add(const state& s) {
    if (2 * states_.size() >= table_.size()) grow();
    auto place = hash_of(s) & (table_.size() - 1);
    for (; table_[place] != 0; place = (place + 1) & (table_.size() - 1))
      if (states_[table_[place] - 1] == s) return false;
    states_.push_back(s);
    table_[place] = static_cast<std::uint32_t>(states_.size());
    return true;
  }
  const state& operator[](std::size_t n) const { return states_[n]; }
  std::size_t size() const { return states_.size(); }

 private:
  void grow() {
    table_.assign(std::max<std::size_t>(1 << 16, 4 * table_.size()), 0);
    for (std::size_t i = 0; i < states_.size(); ++i) {
      auto place = hash_of(states_[i]) & (table_.size() - 1);
      while (table_[place] != 0) place = (place + 1) & (table_.size() - 1);
      table_[place] = static_cast<std::uint32_t>(i + 1);
    }
  }

  std::vector<state> states_;
  std::vector<std::uint32_t> table_;  // by hash: the number of a state + 1, 0: free
};

}  // namespace poseidon::view_model
