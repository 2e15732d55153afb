#include "tests/actors/membership/view_walk.hpp"

#include <algorithm>
#include <utility>

namespace poseidon::view_model {

namespace {

constexpr std::size_t founders = 5, everybody = 7;
constexpr std::uint64_t last_of_chaos = last_epoch - 3;  // the fair part may need further views

class walker {
 public:
  walker(std::uint64_t seed, mutation broken, seat_mask witnesses)
      : random_(seed), broken_(broken), witnesses_(witnesses) {
    constexpr auto all = static_cast<seat_mask>(bit(founders) - 1);
    const view one{1, all, 0, all};
    for (std::uint32_t s = 0; s < everybody; ++s) {
      nodes_.emplace_back(seat_id{s}, s < founders ? one : view{}, broken, witnesses);
      newcomers_ = static_cast<seat_mask>(newcomers_ | (s < founders ? 0 : bit(s)));
    }
    for (const auto& n : nodes_) pointers_.push_back(&n);
  }

  walk_result run() {
    for (auto left = 40 + below(120); left > 0 && good(); --left) random_event();
    if (good()) run_fairly();
    for (const auto& n : nodes_) result_.epoch = std::max(result_.epoch, n.epoch());
    return result_;
  }

 private:
  bool good() const { return result_.violated.empty(); }
  std::uint64_t next() {  // splitmix64
    auto z = random_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  std::size_t below(std::size_t n) { return next() % n; }
  bool lives(std::size_t n) const { return (dead_ & bit(n)) == 0; }
  bool acts(std::size_t n) const { return ((dead_ | asleep_) & bit(n)) == 0; }

  senses sense(std::size_t n) const {
    senses s;
    s.hears = static_cast<seat_mask>((bit(everybody) - 1) & ~(dead_ | asleep_ | deaf_[n]));
    s.dead = static_cast<seat_mask>(dead_ & ~deaf_[n] & ~unproved_[n]);
    if (s.dead != 0 && broken_ != mutation::proves_without_farewell)
      for (const auto& p : posts_)  // its last words have to be read first
        if (value(p.to) == n && chosen_epoch(p) > nodes_[n].epoch())
          s.dead = static_cast<seat_mask>(s.dead & ~bit(value(p.from)));
    if (!nodes_[n].trains() || leader_of(nodes_[n]) != n) return s;
    for (const auto m : seats_of(static_cast<seat_mask>(wanted_in_ & ~dead_)))
      if (nodes_[value(m)].waits()) s.joiners = static_cast<seat_mask>(s.joiners | bit(value(m)));
    s.leavers = wanted_out_;
    return s;
  }
  static std::size_t leader_of(const node& n) { return value(n.trainers_of(n.now().of).front()); }

  /// Invariants hold after each step; what has been sent is on its way.
  void after(std::vector<post> sent) {
    ++result_.steps;
    for (auto& p : sent) posts_.push_back(std::move(p));
    result_.violated = violated(pointers_, made_, dead_, broken_);
  }
  void deliver(const post& p) {
    const auto to = value(p.to);
    std::vector<post> sent;
    const auto before = nodes_[to].now().of;
    nodes_[to].hear(p, sense(to), sent);
    const auto& after_it = nodes_[to].now().of;
    if (before.members != 0 && after_it.epoch == before.epoch + 1) {
      result_.joined |= (after_it.members & ~before.members) != 0;
      result_.left |= (before.members & ~after_it.members & wanted_out_ & ~dead_) != 0;
    }
    after(std::move(sent));
  }
  void propose(std::size_t n) {
    std::vector<post> sent;
    if (nodes_[n].trains() && nodes_[n].epoch() < last_epoch) nodes_[n].propose(sense(n), sent);
    after(std::move(sent));
  }
  void look(std::size_t n, bool limit) {
    std::vector<post> sent;
    if (!nodes_[n].trains()) return;
    if (limit) nodes_[n].straggler_limit_over(sense(n), sent);
    if (!limit) nodes_[n].look_again(sense(n), sent);
    after(std::move(sent));
  }
  bool reach(std::size_t n) {
    if (!nodes_[n].trains() || nodes_[n].is_witness()) return false;
    const auto whole = nodes_[n].now().whole;
    if (whole != no_version && whole >= made_in(pointers_, nodes_[n].epoch(), made_)) return false;
    nodes_[n].reach();
    after({});
    return nodes_[n].now().whole != whole;
  }
  bool apply(std::uint64_t epoch) {
    const auto made = made_in(pointers_, epoch, made_);
    if (made > 200 || !can_apply(pointers_, epoch, made, broken_)) return false;
    made_[epoch] = static_cast<std::uint8_t>(made + 1);
    after({});
    return true;
  }

  void random_event() {
    const auto dice = below(100);
    const auto n = below(everybody);
    if (dice < 55) return carry_a_post();
    if (dice < 65) return acts(n) ? (void)reach(n) : void();
    if (dice < 75) return (void)apply(1 + below(last_of_chaos));
    if (dice < 82) return acts(n) && nodes_[n].epoch() < last_of_chaos ? propose(n) : void();
    if (dice < 87) return acts(n) ? look(n, dice < 85) : void();
    if (dice < 92) return plan(n);
    misfortune(n);
  }

  void carry_a_post() {
    if (posts_.empty()) return;
    const auto place = below(posts_.size());
    const auto p = posts_[place];
    const auto to = value(p.to);
    if (!acts(to) || (deaf_[to] & bit(value(p.from))) != 0) return;
    const auto fate = below(20);  // a link loses its last words only if it is cut
    if (fate > 1) posts_.erase(posts_.begin() + static_cast<std::ptrdiff_t>(place));
    if (fate == 2 && chosen_epoch(p) == 0) return;
    deliver(p);
  }

  /// The head wants a change, or a member hears of it.
  void plan(std::size_t n) {
    auto& it = nodes_[n];
    if (!acts(n) || !it.trains() || it.now().whole == no_version) return;
    auto& clock = drains_[it.epoch()];
    if (clock == 0 && leader_of(it) == n) {
      clock = static_cast<std::uint8_t>(it.now().whole + 2);
      wanted_in_ = static_cast<seat_mask>(newcomers_ & next());
      wanted_out_ = static_cast<seat_mask>(it.now().of.members & next() & next());
      const auto stays = static_cast<seat_mask>(it.now().of.members & ~wanted_out_);
      if ((stays & ~witnesses_) == 0) wanted_out_ = 0;  // that would end the run
    }
    if (clock != 0) it.drain_at(clock);
    after({});
  }

  void misfortune(std::size_t n) {
    const auto its_bit = bit(n);
    const auto other = below(everybody);
    switch (below(6)) {
      case 0:
        if (!lives(n) || crashes_ == 2) return;
        ++crashes_;
        dead_ = static_cast<seat_mask>(dead_ | its_bit);
        for (std::size_t m = 0; m < everybody; ++m)
          if ((deaf_[m] & its_bit) != 0)
            unproved_[m] = static_cast<seat_mask>(unproved_[m] | its_bit);
        return after({});
      case 1:
      case 2:
        asleep_ = static_cast<seat_mask>(asleep_ ^ (below(3) == 0 ? its_bit : asleep_ & its_bit));
        return;
      case 3:
        deaf_[n] = static_cast<seat_mask>(deaf_[n] | (n == other ? 0 : bit(other)));
        if (below(2) == 0)
          deaf_[other] = static_cast<seat_mask>(deaf_[other] | (n == other ? 0 : its_bit));
        return;
      default:
        deaf_[n] = deaf_[other] = 0;
        return;
    }
  }

  void run_fairly() {
    deaf_ = {};
    if (below(2) == 0) asleep_ = 0;
    for (std::size_t round = 0; round < 8 * everybody && good(); ++round) {
      tell_those_behind();
      carry_all();
      train(3);
      if (trains_again() || !good()) break;
      for (std::size_t n = 0; n < everybody; ++n)
        if (acts(n)) look(n, true);
      carry_all();
      if (!posts_.empty() || !good()) continue;
      propose_by_rank(round);
    }
    if (!good() || !somebody_has_to_train()) return;
    result_.had_to_end = true;
    if (!trains_again()) result_.violated = "Ends";
  }
  void carry_all() {
    for (std::size_t limit = 2000; !posts_.empty() && limit > 0 && good(); --limit) {
      const auto p = posts_.front();
      posts_.erase(posts_.begin());
      if (acts(value(p.to))) deliver(p);
    }
  }
  void train(std::size_t clocks) {
    for (std::size_t n = 0; n < everybody; ++n)
      if (acts(n) && nodes_[n].trains() && drains_[nodes_[n].epoch()] != 0)
        nodes_[n].drain_at(drains_[nodes_[n].epoch()]);
    for (; clocks > 0 && good(); --clocks) {
      for (std::size_t n = 0; n < everybody; ++n)
        while (acts(n) && good() && reach(n)) {
        }
      for (std::uint64_t e = 1; e <= last_epoch; ++e) (void)apply(e);
    }
  }
  /// Frames of an epoch that a node does not know make it ask for the chosen view.
  void tell_those_behind() {
    for (std::size_t n = 0; n < everybody; ++n)
      for (const auto& ahead : nodes_)
        if (acts(n) && !nodes_[n].out() && acts(value(ahead.self())) &&
            ahead.epoch() > nodes_[n].epoch() &&
            (nodes_[n].trains() || (ahead.now().of.members & bit(n)) != 0))
          posts_.push_back(
              {ahead.self(), seat_id{static_cast<std::uint32_t>(n)}, chosen(ahead.now().of)});
  }
  /// A member that suspects another one, is frozen or has drained proposes. Each round is the turn of one rank, and each rank
  /// has turns: the youngest may be the only one that is frozen.
  void propose_by_rank(std::size_t round) {
    for (std::size_t n = 0; n < everybody; ++n) {
      const auto& it = nodes_[n];
      if (!acts(n) || !it.trains()) continue;
      const auto suspects = static_cast<seat_mask>(it.now().of.members & ~sense(n).hears);
      const auto rank = proposer_rank(it.self(), seats_of(it.now().of.members), seats_of(suspects),
                                      it.witnesses_of(it.now().of));
      const bool has_reason = suspects != 0 || it.now().frozen || it.drained();
      if (has_reason && rank && *rank == round % everybody) propose(n);
    }
  }

  const node* newest() const {
    const node* out = nullptr;
    for (const auto& n : nodes_)
      if (n.trains() && (out == nullptr || n.epoch() > out->epoch())) out = &n;
    return out;
  }
  /// The newest view has a living quorum, and one of that has values.
  bool somebody_has_to_train() const {
    const auto* n = newest();
    if (n == nullptr || n->epoch() == last_epoch) return false;
    seat_mask up = 0, proved = 0;
    bool has_values = false;
    for (const auto m : seats_of(n->now().of.members))
      if (acts(value(m)) && !nodes_[value(m)].out()) {
        up = static_cast<seat_mask>(up | bit(value(m)));
        proved = static_cast<seat_mask>(proved | sense(value(m)).dead);
        has_values |= nodes_[value(m)].now().whole != no_version;
      }
    return has_values && quorum(seats_of(up), seats_of(n->now().of.members), seats_of(proved),
                                n->witnesses_of(n->now().of));
  }
  bool trains_again() const {
    const auto* n = newest();
    if (n == nullptr) return false;
    const auto& v = n->now().of;
    if (made_in(pointers_, v.epoch, made_) < v.first + 2 || drains_[v.epoch] != 0) return false;
    for (const auto m : seats_of(v.members)) {
      const auto& it = nodes_[value(m)];
      if (!acts(value(m)) || it.epoch() != v.epoch || it.now().frozen) return false;
    }
    return true;
  }

  std::uint64_t random_;
  mutation broken_;
  seat_mask witnesses_;
  std::vector<node> nodes_;
  std::vector<const node*> pointers_;
  std::vector<post> posts_;
  made_versions made_{}, drains_{};
  seat_mask dead_ = 0, asleep_ = 0, newcomers_ = 0, wanted_in_ = 0, wanted_out_ = 0;
  std::array<seat_mask, everybody> deaf_{}, unproved_{};  // by node: of whom
  std::size_t crashes_ = 0;
  walk_result result_;
};

}  // namespace

walk_result walk(std::uint64_t seed, mutation broken, seat_mask witnesses) {
  return walker(seed, broken, witnesses).run();
}

}  // namespace poseidon::view_model
