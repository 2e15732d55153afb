#include "tests/actors/membership/view_search.hpp"

#include "tests/actors/membership/view_deeds.hpp"

#include <algorithm>
#include <bit>
#include <deque>
#include <utility>

namespace poseidon::view_model {

namespace {

class searcher {
 public:
  searcher(const search_limits& limits, mutation broken) : limits_(limits), broken_(broken) {}

  search_result run() {
    state first;
    const view one{1, limits_.members, 0, limits_.members};
    for (std::uint32_t s = 0; s < three; ++s)
      first.nodes[s] = deeds_.number(
          node(seat_id{s}, has(limits_.members, s) ? one : view{}, broken_, limits_.witnesses));
    first.posts = sets_.number({});
    remember(first, 0, search_step());
    for (std::size_t at = 0; at < states_.size() && found_.empty(); ++at) {
      if (states_.size() > limits_.most_states) return result(false);
      from_ = static_cast<std::uint32_t>(at);
      expand();
    }
    return result(found_.empty());
  }

 private:
  /// Where a step leads to, before what cannot matter any more is taken away.
  struct draft {
    std::array<std::uint32_t, three> nodes{};
    post_set posts;
    surroundings around;
  };

  static bool has(unsigned mask, std::size_t n) { return (mask >> n & 1u) != 0; }
  bool acts(std::uint32_t number) const {
    return deeds_[number].trains() && deeds_[number].epoch() <= 2;
  }

  void expand() {
    const auto s = states_[from_];
    now_ = {s.nodes, sets_[s.posts], unpacked(s.around)};
    for (std::uint8_t n = 0; n < three; ++n)
      if (acts(s.nodes[n])) act(n);
    for (std::uint8_t e = 1; e <= 2; ++e) {
      const auto made = made_of(now_, e);
      const bool any_member_is_there = std::any_of(s.nodes.begin(), s.nodes.end(), [&](auto n) {
        return deeds_[n].trains() && deeds_[n].epoch() == e;
      });
      if (!any_member_is_there || made >= limits_.newest ||
          !can_apply(view_of(now_), e, made, broken_))
        continue;
      auto& next = next_ = now_;
      next.around.made[e] = static_cast<std::uint8_t>(made + 1);
      add(next, step_of(deed::apply, 0, e));
    }
  }

  void act(std::uint8_t n) {
    const auto& it = deeds_[now_.nodes[n]];
    const auto epoch = it.epoch();
    for (const auto p : now_.posts)
      if (deeds_.facts(p).to == n)
        take_knowing(step_of(deed::hear, n, p), deeds_.facts(p).prepares);
    if (!it.is_witness() && now_.around.ballots[epoch] < limits_.ballots[epoch])
      take_knowing(step_of(deed::propose, n), true);
    const auto* const b = it.ballots();
    if (b != nullptr && b->proposes()) take_knowing(step_of(deed::look_again, n), false);
    if (b != nullptr && b->waits_for_stragglers())
      take_knowing(step_of(deed::limit_over, n), false);
    const auto whole = it.now().whole;
    if (!it.is_witness() && (whole == no_version || whole < made_of(now_, epoch)))
      take(step_of(deed::reach, n), {});
  }

  /// Tries the event with all that the node can know. The nodes that it hears matter where it testifies. Only pairs in which both
  /// hear each other count, so it is enough that the older one of a pair doubts. A proposer that does not wait for a member
  /// because it does not hear it does what one does whose straggler limit is over.
  void take_knowing(search_step by, bool testifies) {
    const auto members = deeds_[now_.nodes[by.node]].now().of.members;
    const auto younger = static_cast<unsigned>(members & ~(bit(by.node + 1u) - 1));
    for (unsigned proved = 0; proved <= three; ++proved) {
      if (proved > 0 && !can_prove(by.node, proved - 1)) continue;
      by.proves = proved & 3u;
      const auto dead = proved > 0 ? bit(proved - 1) : seat_mask{0};
      for (unsigned doubts = 0; doubts < 8; ++doubts) {
        if ((doubts & ~(younger & ~dead)) != 0 || (doubts != 0 && !testifies)) continue;
        const auto count = static_cast<std::size_t>(std::popcount(doubts));
        if (limits_.doubts != any_number && now_.around.doubts + count > limits_.doubts) continue;
        by.doubts = doubts & 7u;
        const senses with_proof{static_cast<seat_mask>(members & ~dead & ~doubts), dead, 0, 0};
        const senses without{static_cast<seat_mask>(members & ~doubts), 0, 0, 0};
        if (proved == 0 || deeds_.of(now_.nodes[by.node], by, with_proof) !=
                               deeds_.of(now_.nodes[by.node], by, without))
          take(by, with_proof);
      }
    }
  }
  /// The other node is dead, or dies now, and its last words have been read.
  bool can_prove(std::size_t n, std::size_t other) const {
    const auto& a = now_.around;
    if (n == other || !has(deeds_[now_.nodes[n]].now().of.members, other)) return false;
    if (!has(a.dead, other) && (a.dead != 0 || limits_.crashes == 0)) return false;
    return broken_ == mutation::proves_without_farewell ||
           std::none_of(now_.posts.begin(), now_.posts.end(), [&](auto p) {
             return deeds_.facts(p).chosen > deeds_[now_.nodes[n]].epoch() &&
                    deeds_.facts(p).to == n && deeds_.facts(p).from == other;
           });
  }

  void take(search_step by, const senses& s) {
    const auto before = now_.nodes[by.node];
    const auto& done = deeds_.of(before, by, s);
    if (done.node == before && done.posts.empty()) return;  // also a ballot that did not begin
    auto& next = next_ = now_;
    next.nodes[by.node] = done.node;
    next.posts.insert(next.posts.end(), done.posts.begin(), done.posts.end());
    if (limits_.doubts != any_number)
      next.around.doubts += static_cast<std::uint8_t>(std::popcount(unsigned{by.doubts}));
    if (by.what == deed::propose) ++next.around.ballots[deeds_[before].epoch()];
    if (by.proves > 0 && next.around.dead == 0)
      fall(next, by.proves - 1u, deeds_.ended(next.nodes[by.proves - 1u]));
    const bool may_fall = limits_.crashes > 0 && next.around.dead == 0 && done.told.size() > 1;
    if (may_fall) {
      for (const auto only : done.told) {
        auto fallen = next;
        std::erase_if(fallen.posts, [&](auto p) {
          return deeds_.facts(p).from == by.node &&
                 deeds_.facts(p).chosen > deeds_[before].epoch() && deeds_.facts(p).to != only;
        });
        fall(fallen, by.node, done.fallen);
        auto its_step = by;
        its_step.tells_only = (only + 1u) & 3u;
        add(fallen, its_step);
      }
    }
    add(next, by);
  }
  static void fall(draft& d, std::size_t n, std::uint32_t fallen) {
    d.nodes[n] = fallen;
    d.around.dead = static_cast<std::uint8_t>(bit(n));
  }

  nodes_view view_of(const draft& d) {
    for (std::size_t n = 0; n < three; ++n) pointers_[n] = &deeds_[d.nodes[n]];
    return pointers_;
  }
  std::uint8_t made_of(const draft& d, std::uint64_t epoch) {
    made_versions made{};
    std::copy(d.around.made.begin(), d.around.made.end(), made.begin());
    return made_in(view_of(d), epoch, made);
  }

  /// Takes away what cannot matter any more, and remembers the state if it is new.
  void add(draft& d, search_step by) {
    std::array<bool, 3> reachable{};  // by epoch: a node is in it, or may still come to it
    for (const auto n : d.nodes)
      if (acts(n))
        for (auto e = deeds_[n].epoch(); e <= 2; ++e) reachable[e] = true;
    for (std::size_t e = 1; e <= 2; ++e)
      if (!reachable[e]) d.around.ballots[e] = 0;
    if (!reachable[1] &&
        limits_.takes_away) {  // nothing in it can change now, nor can the view that follows it
      d.around.made[1] = 0;
      for (auto& n : d.nodes) n = deeds_.without_first(n);
    }
    drop_posts(d);
    remember({d.nodes, sets_.number(d.posts), packed(d.around)}, from_, by);
  }
  void drop_posts(draft& d) {
    std::sort(d.posts.begin(), d.posts.end());
    d.posts.erase(std::unique(d.posts.begin(), d.posts.end()), d.posts.end());
    if (!limits_.takes_away) return;
    std::erase_if(d.posts, [&](auto p) {
      return !acts(d.nodes[deeds_.facts(p).to]) ||
             !deeds_[d.nodes[deeds_.facts(p).to]].can_use(deeds_.post_of(p));
    });
    unsigned told = 0;
    for (const auto p : d.posts)
      if (deeds_.facts(p).chosen > 0) told |= bit(deeds_.facts(p).to);
    // A question about an older view is answered with the newer one, which helps while its author has not been told.
    if (broken_ != mutation::hears_older_ballots)
      std::erase_if(d.posts, [&](auto p) {
        const auto& author = d.nodes[deeds_.facts(p).from];
        const auto its_epoch = deeds_.facts(p).epoch;
        return deeds_.facts(p).chosen == 0 &&
               its_epoch < deeds_[d.nodes[deeds_.facts(p).to]].epoch() &&
               (!acts(author) || deeds_[author].epoch() > its_epoch ||
                has(told, deeds_.facts(p).from));
      });
  }

  void remember(const state& s, std::uint32_t parent, search_step by) {
    if (!states_.add(s)) return;
    parents_.push_back({parent, by});
    if (!found_.empty()) return;
    const auto around = unpacked(s.around);
    made_versions made{};
    std::copy(around.made.begin(), around.made.end(), made.begin());
    for (std::size_t n = 0; n < three; ++n) pointers_[n] = &deeds_[s.nodes[n]];
    if (limits_.collects_fates) fates_.insert(fate_of(around.dead));
    found_ = violated(pointers_, made, around.dead, broken_);
    if (!found_.starts_with(limits_.looks_for)) found_.clear();
    if (!found_.empty()) culprit_ = states_.size() - 1;
  }

  fate fate_of(seat_mask dead) const {
    fate f{{}, 0, dead};
    for (std::size_t n = 0; n < three; ++n) {
      f.nodes[n] = pointers_[n]->now();
      if (has(dead, n)) f.nodes[n] = {};
      f.nodes[n].accepted = {};
      if (pointers_[n]->out()) f.out = static_cast<seat_mask>(f.out | bit(n));
    }
    return f;
  }
  search_result result(bool complete) const {
    search_result r{found_,         {},           states_.size(), deeds_.nodes(),
                    deeds_.posts(), sets_.size(), complete,       fates_};
    for (auto at = culprit_; at != 0; at = parents_[at].first)
      r.trace.push_back(deeds_.text_of(parents_[at].second));
    std::reverse(r.trace.begin(), r.trace.end());
    return r;
  }

  search_limits limits_;
  mutation broken_;
  deeds deeds_;
  numbered_sets sets_;
  state_set states_;
  std::deque<std::pair<std::uint32_t, search_step>> parents_;
  std::uint32_t from_ = 0;
  draft now_;   // the state that is expanded
  draft next_;  // where a step leads; a member, so that its memory is used again
  std::array<const node*, three> pointers_{};
  std::set<fate> fates_;
  std::string found_;
  std::size_t culprit_ = 0;
};

}  // namespace

search_result search(const search_limits& limits, mutation broken) {
  return searcher(limits, broken).run();
}

std::string to_string(const search_limits& l) {
  const auto witness =
      l.witnesses == 0 ? "" : " (" + std::to_string(std::countr_zero(l.witnesses)) + " a witness)";
  return std::to_string(std::popcount(l.members)) + " nodes" + witness +
         ", 2 epochs, versions up to " + std::to_string(l.newest) + ", " +
         std::to_string(l.ballots[1]) + " and " + std::to_string(l.ballots[2]) + " ballots, " +
         std::to_string(l.crashes) + " crashes, " +
         (l.doubts == any_number ? "any number of" : std::to_string(l.doubts)) + " doubts";
}

}  // namespace poseidon::view_model
