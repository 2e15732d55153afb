// tests/actors/membership/view_states.hpp - the states of a search, 20 bytes each: equal nodes, sets of posts and surroundings are
// kept once. Whole states are compared, not hashes of them, so no two are taken for one.
#pragma once
#include "tests/actors/membership/view_model.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

namespace poseidon::view_model {

inline constexpr std::size_t three = 3;
inline constexpr seat_mask all_three = 7;

/// What is not a node's own: who is dead, and counters. All fits into 32 bits.
struct surroundings {
  std::uint8_t dead = 0, doubts = 0;
  std::array<std::uint8_t, 3> made{}, ballots{};  // by epoch
};

struct state {
  std::array<std::uint32_t, three> nodes{};
  std::uint32_t posts = 0, around = 0;
  bool operator==(const state&) const = default;
};

inline std::uint32_t packed(const surroundings& s) {
  return s.dead | s.made[1] << 3 | s.made[2] << 7 | s.ballots[1] << 11 | s.ballots[2] << 15 |
         static_cast<std::uint32_t>(s.doubts) << 19;
}
inline surroundings unpacked(std::uint32_t p) {
  const auto part = [p](int from, std::uint32_t most) {
    return static_cast<std::uint8_t>(p >> from & most);
  };
  return {
      part(0, 7), part(19, 255), {0, part(3, 15), part(7, 15)}, {0, part(11, 15), part(15, 15)}};
}

inline std::uint64_t mixed(std::uint64_t h, std::uint64_t x) {
  h = (h ^ x) * 0xff51afd7ed558ccd;
  return h ^ h >> 32;
}
inline std::size_t hash_of(const state& s) {
  std::uint64_t h = 0x9e3779b97f4a7c15;
  for (const std::uint64_t x : {s.nodes[0], s.nodes[1], s.nodes[2], s.posts, s.around})
    h = mixed(h, x);
  return h;
}

/// The numbers of posts, rising, each once.
using post_set = std::vector<std::uint16_t>;
struct post_set_hash {
  std::size_t operator()(const post_set& set) const {
    std::uint64_t h = set.size();
    for (const auto p : set) h = mixed(h, p);
    return h;
  }
};

/// A number for each value.
template <class T, class Map = std::map<T, std::uint32_t>>
class numbered {
 public:
  std::uint32_t number(const T& v) {
    if (const auto known = numbers_.find(v); known != numbers_.end()) return known->second;
    const auto at = numbers_.emplace(v, static_cast<std::uint32_t>(values_.size())).first;
    values_.push_back(&at->first);
    return at->second;
  }
  const T& operator[](std::uint32_t n) const { return *values_[n]; }
  std::size_t size() const { return values_.size(); }

 private:
  Map numbers_;
  std::vector<const T*> values_;
};
using numbered_sets =
    numbered<post_set, std::unordered_map<post_set, std::uint32_t, post_set_hash>>;

/// States in the order in which they were found.
class state_set {
 public:
  /// False: it is there already.
  bool add(const state& s) {
    if (3 * states_.size() >= 2 * table_.size()) grow();
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
    const auto places = table_.empty() ? std::size_t{1} << 16 : 2 * table_.size();
    table_ = std::vector<std::uint32_t>();
    table_.resize(places);
    for (std::size_t i = 0; i < states_.size(); ++i) {
      auto place = hash_of(states_[i]) & (places - 1);
      while (table_[place] != 0) place = (place + 1) & (places - 1);
      table_[place] = static_cast<std::uint32_t>(i + 1);
    }
  }

  std::deque<state> states_;          // grows without a copy
  std::vector<std::uint32_t> table_;  // by hash: the number of a state + 1, 0: free
};

}  // namespace poseidon::view_model
