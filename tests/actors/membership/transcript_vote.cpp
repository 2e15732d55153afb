// The members of a view that vote on the next one, played by the product's view_change: what it asks for is done at once.
#include "actors/membership/view_change.hpp"
#include "messages/overloaded.hpp"
#include "tests/actors/membership/transcript_stages.hpp"
#include "tests/actors/membership/transcript_text.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>
#include <variant>

namespace poseidon::transcript {

namespace {

seat_list seats_in(const std::vector<std::uint64_t>& numbers) {
  seat_list out;
  for (const auto n : numbers) out.push_back(seat_id{static_cast<std::uint32_t>(n)});
  return out;
}

std::vector<frames::member> members_of(const seat_list& seats) {
  std::vector<frames::member> out;
  for (const auto s : seats) out.push_back({s, ""});
  return out;
}

/// What of a slow member has not given its work up.
constexpr view_change::task the_solver = 1;

class voters final : public stage {
 public:
  answers play(const event& e) override {
    said_.clear();
    happen(e);
    return said_;
  }

 private:
  struct member {
    view_change change;
    agreed_view view;
    std::optional<version_id> whole{};
    std::optional<seat_list> plan{};
    bool slow = false, has_ended = false;
  };
  struct post {
    seat_id from, to;
    frame_header what;
  };
  [[noreturn]] static void fail() { throw std::invalid_argument("members know no such event"); }
  void say(seat_id who, const std::string& what) {
    said_.push_back(std::to_string(value(who)) + " " + what);
  }

  void happen(const event& e) {
    const auto& w = e.words;
    if (w == "are members" || w == "are members with witness") return begin(e);
    if (w == "letters arrive") return deliver();
    if (w == "letters to arrive") return deliver_to(e);
    if (w == "letters to are lost") return lose(e);
    if (w == "a loss ends the run") return (void)(survive_ = 0);
    if (w == "the lost may have solver state") return (void)(state_is_here_ = false);
    if (e.seats.empty()) fail();
    if (w == "do not hear each other") return part(e.seats);
    if (w == "hear each other again") return meet(e.seats);
    for (const auto s : e.seats) happen_to(s, e);
  }

  void begin(const event& e) {
    agreed_view view;
    view.epoch = 1;
    const auto witnesses = seats_in(e.numbers);
    view.witnesses = members_of(witnesses);
    view.before = without_witnesses(e.seats, witnesses);
    view.members = members_of(view.before);
    view_change_rules rules;
    rules.next = [this](const membership_facts& f) {
      const auto next = next_members(f);
      if (!next.is_decided()) said_.push_back("no view yet. " + std::string(words_of(next.why)));
      return next;
    };
    for (const auto s : e.seats) {
      view.seat = s;
      auto& m = all_.emplace(s, member{view_change(rules), view}).first->second;
      if (view.has_witness(s))
        m.change.enters({}, 0, told(m));
      else
        (void)m.change.begins({});
    }
  }

  void happen_to(seat_id s, const event& e) {
    auto& m = all_.at(s);
    const auto& w = e.words;
    const auto number = e.numbers.empty() ? 0 : e.numbers.front();
    const auto other = seat_id{static_cast<std::uint32_t>(number)};
    if (w == "has version" || w == "have version") {
      m.whole = version_id{number};
    } else if (w == "has drained" || w == "have drained") {
      m.whole = version_id{number};
      (void)m.change.drains(clock_id{number});
      (void)m.change.has_drained(0, {});
    } else if (w == "came with this view" || w == "come with this view") {
      for (auto& [seat, of] : all_) std::erase(of.view.before, s);
    } else if (w == "dies") {
      die(s);
    } else if (w == "has proof of the death of") {
      m.change.dead(other, facts(m));
    } else if (w == "plans a view of") {
      m.plan = seats_in(e.numbers);
    } else if (w == "has slept, and may have gone on") {
      m.change.loses(other, "", view_change::fate::may_have_gone_on, facts(m));
    } else if (w == "has got a word of") {
      m.change.answered(other);
    } else if (w == "is slow to freeze") {
      m.slow = true;
    } else if (w == "has given its clocks up") {
      (void)m.change.left(the_solver, facts(m));
    } else if (w == "proposes") {
      propose(m);
    } else if (w == "waits ticks" || w == "wait ticks") {
      for (auto n = number; n > 0 && !m.has_ended; --n) {
        m.change.tick(facts(m));
        m.change.look(facts(m));
        act(m);
      }
    } else if (w == "waits no longer for who is slow") {
      m.change.waits_no_longer(facts(m));
    } else {
      fail();
    }
    act(m);
  }

  void propose(member& m) {
    if (!m.change.is_still()) freeze(m);
    if (!m.plan) return m.change.proposes(facts(m));
    m.change.plans({2, m.change.clock(), members_of(*m.plan), {}}, facts(m));
  }
  void freeze(member& m) {
    say(m.view.seat, "freezes");
    std::set<view_change::task> tasks;
    if (m.slow) tasks.insert(the_solver);
    m.change.freeze(std::move(tasks), {}, {}, facts(m));
  }

  /// Each member that hears somebody no more freezes.
  void notice(member& m, seat_id lost) {
    if (m.view.has_witness(m.view.seat) || dead_.contains(m.view.seat) || m.has_ended) return;
    m.change.loses(lost, std::to_string(value(lost)) + " is not heard", view_change::fate::unknown,
                   facts(m));
    if (survive_ > 0 && !m.change.is_still() && !m.change.has_frozen()) freeze(m);
    while (m.change.take_action()) {
    }
  }
  void part(const std::vector<seat_id>& who) {
    for (const auto a : who)
      for (const auto b : who)
        if (a != b) deaf_.insert({a, b});
    for (const auto a : who)
      for (const auto b : who)
        if (a != b) notice(all_.at(a), b);
  }
  void meet(const std::vector<seat_id>& who) {
    for (const auto a : who)
      for (const auto b : who)
        if (deaf_.erase({a, b}) > 0) all_.at(a).change.found(b, facts(all_.at(a)));
  }
  void die(seat_id s) {
    dead_.insert(s);
    std::erase_if(posts_, [&](const post& p) { return p.to == s; });
    for (auto& [seat, m] : all_) notice(m, s);
  }
  void lose(const event& e) {
    for (const auto n : e.numbers)
      std::erase_if(posts_, [&](const post& p) { return value(p.to) == n; });
  }
  /// All of them, and the answers.
  void deliver() {
    while (!posts_.empty()) {
      const auto p = std::move(posts_.front());
      posts_.pop_front();
      hand_over(p);
    }
  }
  /// Those that are under way to these members; their answers wait.
  void deliver_to(const event& e) {
    std::deque<post> later;
    for (auto& p : std::exchange(posts_, {}))
      if (std::find(e.numbers.begin(), e.numbers.end(), value(p.to)) != e.numbers.end())
        hand_over(p);
      else
        later.push_back(std::move(p));
    posts_.insert(posts_.begin(), later.begin(), later.end());
  }
  void hand_over(const post& p) {
    auto& m = all_.at(p.to);
    if (dead_.contains(p.to) || deaf_.contains({p.to, p.from}) || m.has_ended) return;
    said_.push_back(std::to_string(value(p.from)) + " to " + std::to_string(value(p.to)) + ": " +
                    words_of(p.what));
    const auto* const next = std::get_if<frames::next_view>(&p.what);
    if (next == nullptr) {
      m.change.hears(p.from, p.what, facts(m));
    } else if (!m.view.has_witness(p.to)) {
      m.change.is_told(*next, facts(m));
    } else if (next->epoch > m.change.epoch(m.view)) {
      say(p.to, "knows " + words_of(*next));
      m.change.enters(next->first_clock, 0, *next);
    }
    act(m);
  }

  void act(member& m) {
    const auto self = m.view.seat;
    while (const auto action = m.change.take_action())
      std::visit(overloaded{
                     [&](const view_action::send& a) {
                       if (all_.contains(a.to) && !dead_.contains(a.to))
                         posts_.push_back({self, a.to, a.frame});
                     },
                     [&](const view_action::freeze&) { freeze(m); },
                     [&](const view_action::follow& a) {
                       say(self,
                           "knows " + words_of(a.next) + (a.zeroed.empty() ? "" : ", with zeros"));
                       m.change.follows(a.next, facts(m));
                     },
                     [&](const view_action::end_graph&) { m.change.ends({}); },
                     [&](const view_action::end_run& a) {
                       if (a.next.epoch > 0) say(self, "knows " + words_of(a.next));
                       say(self, std::string("ends: ") + words_of(a.of));
                       m.has_ended = true;
                     },
                     [&](const view_action::show_pause& a) {
                       if (a.is_news) say(self, "is " + a.why);
                     },
                     [](const auto&) {},
                 },
                 *action);
  }

  frames::next_view told(const member& m) const {
    frames::next_view out{1, {}, m.view.members, {}};
    out.witnesses = m.view.witnesses;
    return out;
  }
  view_facts facts(const member& m) const {
    view_facts f{.view = m.view, .survive = survive_, .versions = 100, .zeroes_lost_state = true};
    for (const auto& [s, other] : all_)
      if (!dead_.contains(s) && !deaf_.contains({m.view.seat, s})) f.linked.push_back(s);
    f.whole_version = [&m] { return m.whole; };
    f.as_told = [this, &m] { return told(m); };
    f.layers_without_state = [this](const frames::next_view&) {
      return state_is_here_ ? std::vector<std::string>() : std::vector<std::string>{"a layer"};
    };
    return f;
  }

  std::map<seat_id, member> all_;
  std::set<seat_id> dead_;
  std::set<std::pair<seat_id, seat_id>> deaf_;  // the first does not hear the second
  std::deque<post> posts_;
  std::uint32_t survive_ = 1;
  bool state_is_here_ = true;
  answers said_;
};

}  // namespace

std::unique_ptr<stage> vote_stage() {
  return std::make_unique<voters>();
}

}  // namespace poseidon::transcript
