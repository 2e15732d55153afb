// tests/actors/membership/view_deeds.hpp
//
// What the nodes of a search do. Nodes and posts have numbers, equal ones the same. What a node does in one of its states, by
// one event and with what it knows of the others, is computed once and then looked up.
#pragma once
#include "tests/actors/membership/view_states.hpp"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace poseidon::view_model {

enum class deed : std::uint8_t { hear, propose, look_again, limit_over, reach, apply };

struct search_step {
  deed what : 4 = deed::hear;
  std::uint8_t node : 4 = 0;
  std::uint8_t doubts : 3 = 0;      // the nodes that it does not hear
  std::uint8_t proves : 2 = 0;      // this seat + 1 is proved dead
  std::uint8_t tells_only : 2 = 0;  // it crashes when it has told this seat + 1 what it has decided
  std::uint16_t detail = 0;         // a post or an epoch
};

inline search_step step_of(deed what, std::uint8_t node, std::uint16_t detail = 0) {
  search_step s;
  s.what = what;
  s.node = node & 15u;
  s.detail = detail;
  return s;
}

struct effect {
  std::uint32_t node = 0;
  post_set posts;                  // in the order in which they are sent
  std::uint32_t fallen = 0;        // the node, if it dies while it tells
  std::vector<std::uint8_t> told;  // the seats that it tells what it has decided
  bool operator==(const effect&) const = default;
};

/// The parts of a post that the search asks for often.
struct post_facts {
  std::uint8_t from = 0, to = 0;
  std::uint8_t chosen = 0;  // the epoch of the view that it tells; 0: it tells none
  std::uint8_t epoch = 0;
  bool prepares = false;
};

class deeds {
 public:
  std::uint32_t number(const node& n) { return nodes_.number(n); }
  const node& operator[](std::uint32_t number) const { return nodes_[number]; }
  const post& post_of(std::uint16_t number) const { return posts_[number]; }
  const post_facts& facts(std::uint16_t number) const { return facts_[number]; }
  std::size_t nodes() const { return nodes_.size(); }
  std::size_t posts() const { return posts_.size(); }

  const effect& of(std::uint32_t node_number, const search_step& by, const senses& s) {
    const auto event = static_cast<std::uint64_t>(by.what) << 16 | by.detail;
    const auto key = static_cast<std::uint64_t>(node_number) << 32 | event << 8 |
                     static_cast<std::uint64_t>(s.hears << 3 | s.dead);
    const auto [at, added] = effects_.try_emplace(key);
    auto& o = at->second;
    if (!added) return o;
    auto it = nodes_[node_number];
    for (const auto& p : happen(it, by, s)) {
      o.posts.push_back(number_of(p));
      if (chosen_epoch(p) == it.epoch() && it.epoch() > nodes_[node_number].epoch())
        o.told.push_back(static_cast<std::uint8_t>(value(p.to)));
    }
    o.node = number(it);
    if (o.told.empty()) return o;
    it = nodes_[node_number];
    it.die_when_decided();
    (void)happen(it, by, s);
    it.die();
    o.fallen = number(it);
    return o;
  }
  /// That node once its process has ended.
  std::uint32_t ended(std::uint32_t node_number) {
    const auto [at, added] = ended_.try_emplace(node_number, node_number);
    if (!added) return at->second;
    auto it = nodes_[node_number];
    it.die();
    return at->second = number(it);
  }
  /// That node once no living node is in epoch 1 any more.
  std::uint32_t without_first(std::uint32_t node_number) {
    const auto [at, added] = forgotten_.try_emplace(node_number, node_number);
    if (!added) return at->second;
    auto it = nodes_[node_number];
    it.forget(1);
    return at->second = number(it);
  }
  std::string text_of(const search_step& s) const;

 private:
  std::vector<post> happen(node& it, const search_step& by, const senses& s) const {
    std::vector<post> sent;
    if (by.what == deed::hear) it.hear(posts_[by.detail], s, sent);
    if (by.what == deed::propose) it.propose(s, sent);
    if (by.what == deed::look_again) it.look_again(s, sent);
    if (by.what == deed::limit_over) it.straggler_limit_over(s, sent);
    if (by.what == deed::reach) it.reach();
    return sent;
  }
  std::uint16_t number_of(const post& p) {
    const auto n = posts_.number(p);
    if (n > 0xffff) throw std::length_error("view_search: more than 65536 different posts");
    const auto small = [](std::uint64_t x) { return static_cast<std::uint8_t>(x); };
    if (n == facts_.size())
      facts_.push_back({small(value(p.from)), small(value(p.to)), small(chosen_epoch(p)),
                        small(p.what.epoch), p.what.is == message::kind::prepare});
    return static_cast<std::uint16_t>(n);
  }

  numbered<node> nodes_;
  numbered<post> posts_;
  std::vector<post_facts> facts_;  // by number of a post
  std::unordered_map<std::uint64_t, effect> effects_;
  std::unordered_map<std::uint32_t, std::uint32_t> ended_, forgotten_;
};

inline std::string deeds::text_of(const search_step& s) const {
  if (s.what == deed::apply) return "a version is made in epoch " + std::to_string(s.detail);
  auto out = "node " + std::to_string(s.node);
  if (s.what == deed::hear) out += " hears " + to_string(posts_[s.detail]);
  if (s.what == deed::propose) out += " proposes";
  if (s.what == deed::look_again) out += " looks at the promises again";
  if (s.what == deed::limit_over) out += " waits no longer for stragglers";
  if (s.what == deed::reach) out += " has one version more";
  for (std::uint32_t m = 0; m < three; ++m)
    if ((s.doubts >> m & 1u) != 0) out += ", does not hear node " + std::to_string(m);
  if (s.proves > 0) out += ", has proved that node " + std::to_string(s.proves - 1) + " is dead";
  if (s.tells_only > 0)
    out += ", crashes when it has told node " + std::to_string(s.tells_only - 1);
  return out;
}

}  // namespace poseidon::view_model
