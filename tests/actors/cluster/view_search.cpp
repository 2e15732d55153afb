#include "tests/actors/cluster/view_search.hpp"

#include "tests/actors/cluster/view_states.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace poseidon::view_model {

namespace {

/// Sets of posts; each is another one and one post more.
using post_set = std::vector<std::uint16_t>;

enum class deed : std::uint16_t {
  hear,
  propose,
  look_again,
  limit_over,
  reach,
  apply,
  crash,
  sleep,
  wake,
  cut
};

struct step {
  deed what = deed::hear;
  std::uint8_t node = 0;
  std::uint16_t detail = 0;  // a post, an epoch, or whom it does not hear any more
};

class searcher {
 public:
  searcher(const search_limits& limits, mutation broken) : limits_(limits), broken_(broken) {}

  search_result run() {
    state first;
    const view one{1, all_three, 0};
    for (std::uint32_t s = 0; s < three; ++s)
      first.nodes[s] = nodes_.number(node(seat_id{s}, one, broken_));
    first.posts = sets_.number({});
    first.around = arounds_.number({});
    add(first, 0, {});
    for (std::size_t at = 0; at < states_.size() && found_.empty(); ++at) {
      if (states_.size() > limits_.most_states) return result(false);
      expand(static_cast<std::uint32_t>(at));
    }
    return result(found_.empty());
  }

 private:
  struct outcome {
    std::uint32_t node = 0;
    std::vector<std::uint16_t> posts;
  };

  void expand(std::uint32_t at) {
    const auto s = states_[at];
    const auto around = arounds_[s.around];
    for (std::uint8_t n = 0; n < three; ++n) {
      if (((around.dead | around.asleep) & bit(n)) != 0) continue;
      act(at, s, around, n);
    }
    for (std::uint8_t e = 1; e <= 2; ++e) {
      const auto made = made_of(s, around, e);
      if (made >= limits_.newest || !can_apply(view_of(s), e, made, broken_)) continue;
      auto next = around;
      next.made[e] = static_cast<std::uint8_t>(made + 1);
      surround(at, s, next, {deed::apply, 0, e});
    }
    meet_faults(at, s, around);
  }

  void act(std::uint32_t at, const state& s, const surroundings& around, std::uint8_t n) {
    const auto& it = nodes_[s.nodes[n]];
    if (!it.trains()) return;
    const auto now = sense(s, around, n);
    const bool decides = it.epoch() <= 2;
    for (const auto p : sets_[s.posts]) {
      const auto& letter = posts_[p];
      if (value(letter.to) != n || (around.deaf[n] & bit(value(letter.from))) != 0) continue;
      if (decides || chosen_epoch(letter) > 0) apply_step(at, s, around, {deed::hear, n, p}, now);
    }
    if (!decides) return;
    if (around.ballots[it.epoch()] < limits_.ballots[it.epoch()]) {
      auto next = around;
      ++next.ballots[it.epoch()];
      apply_step(at, s, next, {deed::propose, n, 0}, now);
    }
    if (it.ballots().proposes()) apply_step(at, s, around, {deed::look_again, n, 0}, now);
    if (it.ballots().waits_for_stragglers())
      apply_step(at, s, around, {deed::limit_over, n, 0}, now);
    if (it.now().whole == no_version || it.now().whole < made_of(s, around, it.epoch()))
      apply_step(at, s, around, {deed::reach, n, 0}, now);
  }

  void meet_faults(std::uint32_t at, const state& s, const surroundings& around) {
    for (std::uint8_t n = 0; n < three; ++n) {
      const auto its_bit = static_cast<std::uint8_t>(bit(n));
      if ((around.dead & its_bit) != 0) continue;
      auto next = around;
      if (limits_.crashes > 0 && around.dead == 0) {
        next.dead = its_bit;
        surround(at, s, next, {deed::crash, n, 0});
      }
      next = around;
      if ((around.asleep & its_bit) != 0) {
        next.asleep = 0;
        surround(at, s, next, {deed::wake, n, 0});
      } else if (around.sleeps < limits_.sleeps) {
        next.asleep = its_bit;
        ++next.sleeps;
        surround(at, s, next, {deed::sleep, n, 0});
      }
      if (around.cuts < limits_.cuts)
        for (std::uint8_t other = 0; other < three; ++other) cut(at, s, around, n, other);
    }
  }

  void cut(std::uint32_t at, const state& s, surroundings around, std::uint8_t n,
           std::uint8_t other) {
    if (n == other || (!limits_.one_sided && other < n)) return;
    around.deaf[n] = static_cast<std::uint8_t>(bit(other));
    if (!limits_.one_sided) around.deaf[other] = static_cast<std::uint8_t>(bit(n));
    ++around.cuts;
    surround(at, s, around, {deed::cut, n, other});
  }

  void surround(std::uint32_t at, state s, const surroundings& around, step by) {
    s.around = arounds_.number(around);
    add(s, at, by);
  }

  void apply_step(std::uint32_t at, state s, const surroundings& around, step by,
                  const senses& now) {
    const auto& done = outcome_of(s.nodes[by.node], by, now);
    s.nodes[by.node] = done.node;
    for (const auto p : done.posts) s.posts = with(s.posts, p);
    if (s == states_[at]) return;  // also a ballot that did not begin
    s.around = arounds_.number(around);
    add(s, at, by);
  }

  /// What a node does, computed once.
  const outcome& outcome_of(std::uint32_t number, step by, const senses& now) {
    const auto event = static_cast<std::uint64_t>(by.what) << 16 | by.detail;
    const auto key = static_cast<std::uint64_t>(number) << 32 | event << 8 |
                     static_cast<std::uint64_t>(now.hears << 3 | now.dead);
    const auto [at, added] = outcomes_.try_emplace(key);
    if (!added) return at->second;
    auto it = nodes_[number];
    std::vector<post> sent;
    if (by.what == deed::hear) it.hear(posts_[by.detail], now, sent);
    if (by.what == deed::propose) it.propose(now, sent);
    if (by.what == deed::look_again) it.look_again(now, sent);
    if (by.what == deed::limit_over) it.straggler_limit_over(now, sent);
    if (by.what == deed::reach) it.reach();
    at->second.node = nodes_.number(it);
    for (const auto& p : sent)
      at->second.posts.push_back(static_cast<std::uint16_t>(posts_.number(p)));
    return at->second;
  }

  senses sense(const state& s, const surroundings& around, std::uint8_t n) const {
    senses out;
    out.hears = static_cast<seat_mask>(all_three & ~(around.dead | around.asleep | around.deaf[n]));
    out.dead = static_cast<seat_mask>(around.dead & ~around.deaf[n]);
    if (out.dead == 0 || broken_ == mutation::proves_without_farewell) return out;
    for (const auto number : sets_[s.posts]) {  // its last words have to be read first
      const auto& p = posts_[number];
      if (value(p.to) == n && chosen_epoch(p) > nodes_[s.nodes[n]].epoch())
        out.dead = static_cast<seat_mask>(out.dead & ~bit(value(p.from)));
    }
    return out;
  }

  std::uint32_t with(std::uint32_t set, std::uint16_t post) {
    const auto [at, added] = unions_.try_emplace(static_cast<std::uint64_t>(set) << 16 | post, set);
    if (!added) return at->second;
    auto more = sets_[set];
    const auto place = std::lower_bound(more.begin(), more.end(), post);
    if (place != more.end() && *place == post) return set;
    more.insert(place, post);
    return at->second = sets_.number(more);
  }

  nodes_view view_of(const state& s) {
    for (std::size_t n = 0; n < three; ++n) pointers_[n] = &nodes_[s.nodes[n]];
    return pointers_;
  }
  std::uint8_t made_of(const state& s, const surroundings& around, std::uint64_t epoch) {
    if (epoch > 2) return no_version;
    made_versions made{};
    std::copy(around.made.begin(), around.made.end(), made.begin());
    return made_in(view_of(s), epoch, made);
  }

  void add(const state& s, std::uint32_t parent, step by) {
    if (!states_.add(s)) return;
    parents_.push_back({parent, by});
    made_versions made{};
    const auto& around = arounds_[s.around];
    std::copy(around.made.begin(), around.made.end(), made.begin());
    if (!found_.empty()) return;
    found_ = violated(view_of(s), made, around.dead, broken_);
    if (!found_.empty()) culprit_ = states_.size() - 1;
  }

  search_result result(bool complete) const {
    search_result r{found_, {}, states_.size(), nodes_.size(), posts_.size(), complete};
    for (auto at = culprit_; at != 0; at = parents_[at].first)
      r.trace.push_back(text_of(parents_[at].second));
    std::reverse(r.trace.begin(), r.trace.end());
    return r;
  }
  std::string text_of(const step& s) const {
    const auto who = "node " + std::to_string(s.node);
    switch (s.what) {
      case deed::hear:
        return who + " hears " + to_string(posts_[s.detail]);
      case deed::propose:
        return who + " proposes";
      case deed::look_again:
        return who + " looks at the promises again";
      case deed::limit_over:
        return who + " waits no longer for stragglers";
      case deed::reach:
        return who + " has one version more";
      case deed::apply:
        return "a version is made in epoch " + std::to_string(s.detail);
      case deed::crash:
        return who + " crashes";
      case deed::sleep:
        return who + " falls asleep";
      case deed::wake:
        return who + " wakes";
      case deed::cut:
        return who + " is cut from node " + std::to_string(s.detail);
    }
    return "";
  }

  search_limits limits_;
  mutation broken_;
  numbered<node> nodes_;
  numbered<post> posts_;
  numbered<post_set> sets_;
  numbered<surroundings> arounds_;
  std::unordered_map<std::uint64_t, outcome> outcomes_;
  std::unordered_map<std::uint64_t, std::uint32_t> unions_;
  state_set states_;
  std::vector<std::pair<std::uint32_t, step>> parents_;
  std::array<const node*, three> pointers_{};
  std::string found_;
  std::size_t culprit_ = 0;
};

}  // namespace

search_result search(const search_limits& limits, mutation broken) {
  return searcher(limits, broken).run();
}

}  // namespace poseidon::view_model
