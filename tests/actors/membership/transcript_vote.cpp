// The members of a view that vote on the next one, played by the product's ballot_box and next_members.
#include "actors/membership/ballot_box.hpp"
#include "actors/membership/next_members.hpp"
#include "messages/overloaded.hpp"
#include "tests/actors/membership/transcript_stages.hpp"

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

struct next {
  seat_list members;
  std::uint64_t first = 0;
  auto operator<=>(const next&) const = default;
};
using box = ballot_box<next>;

std::string text_of(const next& n) {
  return "view 2 of " + seats_text(n.members) + " from version " + std::to_string(n.first);
}
std::string text_of(const ballot& b) {
  return std::to_string(b.round) + "." + std::to_string(value(b.seat));
}

std::string text_of(const box::message& m) {
  return std::visit(
      overloaded{
          [](const box::prepare& p) { return "prepare " + text_of(p.number); },
          [](const box::promise& p) {
            if (p.promised > p.number) return "refused, " + text_of(p.promised) + " is promised";
            const auto& whole = p.says.stand.whole;
            return "promise " + text_of(p.number) + ", has " +
                   (whole ? "version " + std::to_string(value(*whole)) : "no version") +
                   ", hears " + seats_text(p.says.hears) +
                   (p.accepted ? ", has accepted " + text_of(p.accepted->value) : "");
          },
          [](const box::accept& a) {
            return "accept " + text_of(a.number) + ": " + text_of(a.value);
          },
          [](const box::accepted& a) {
            return (a.promised > a.number ? "refused, " + text_of(a.promised) + " is promised"
                                          : "accepted " + text_of(a.number));
          },
          [](const box::chosen& c) { return "chosen: " + text_of(c.value); },
      },
      m);
}

const char* text_of(obstacle why) {
  for (const auto& r : membership_rules())
    if (r.why == why) return r.says.data();
  return "";
}

class voters final : public stage {
 public:
  answers play(const event& e) override {
    said_.clear();
    happen(e);
    for (auto& [seat, m] : all_)
      if (m.votes.decided() && !std::exchange(m.knows, true))
        said_.push_back(std::to_string(value(seat)) + " knows " + text_of(*m.votes.decided()));
    return said_;
  }

 private:
  struct member {
    box votes;
    node_stand stand{};
    std::optional<seat_list> plan{};
    bool knows = false, waits = false;
  };
  struct post {
    seat_id from, to;
    box::message what;
  };
  [[noreturn]] static void fail() { throw std::invalid_argument("members know no such event"); }

  void happen(const event& e) {
    const auto& w = e.words;
    if (w == "are members" || w == "are members with witness") {
      for (const auto n : e.numbers) witnesses_.push_back(seat_id{static_cast<std::uint32_t>(n)});
      members_ = e.seats;
      for (const auto s : members_)
        all_.emplace(s, member{box{1, s, members_, next{members_, 0}, &quorum, witnesses_}});
      for (const auto s : witnesses_) all_.at(s).stand.drained = true;
      return;
    }
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

  void happen_to(seat_id s, const event& e) {
    auto& m = all_.at(s);
    const auto& w = e.words;
    const auto number = e.numbers.empty() ? 0 : e.numbers.front();
    if (w == "has version" || w == "have version")
      m.stand = {version_id{number}, false};
    else if (w == "has drained" || w == "have drained")
      m.stand = {version_id{number}, true};
    else if (w == "came with this view" || w == "come with this view")
      brought_.push_back(s);
    else if (w == "dies")
      die(s);
    else if (w == "has proof of the death of")
      prove(s, number);
    else if (w == "plans a view of")
      m.plan = seats_in(e.numbers);
    else if (w == "waits for a word of those that may have gone on")
      m.waits = true;
    else if (w == "has got it")
      m.waits = false;
    else if (w == "proposes")
      post_all(s, m.votes.propose(knows(s)));
    else if (w == "looks again")
      post_all(s, m.votes.look_again(knows(s)));
    else if (w == "waits no longer for who is slow")
      post_all(s, m.votes.straggler_limit_over(knows(s)));
    else
      fail();
  }

  static seat_list seats_in(const std::vector<std::uint64_t>& numbers) {
    seat_list out;
    for (const auto n : numbers) out.push_back(seat_id{static_cast<std::uint32_t>(n)});
    return out;
  }
  void part(const std::vector<seat_id>& who) {
    for (const auto a : who)
      for (const auto b : who)
        if (a != b) deaf_.insert({a, b});
  }
  void meet(const std::vector<seat_id>& who) {
    for (const auto a : who)
      for (const auto b : who) deaf_.erase({a, b});
  }
  void die(seat_id s) {
    dead_.insert(s);
    std::erase_if(posts_, [&](const post& p) { return p.to == s; });
  }
  void prove(seat_id s, std::uint64_t dead) {
    auto& known = proved_[s];
    known.push_back(seat_id{static_cast<std::uint32_t>(dead)});
    std::sort(known.begin(), known.end());
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
    if (dead_.contains(p.to) || deaf_.contains({p.to, p.from})) return;
    said_.push_back(std::to_string(value(p.from)) + " to " + std::to_string(value(p.to)) + ": " +
                    text_of(p.what));
    box::letters out;
    (void)all_.at(p.to).votes.hear(p.from, p.what, knows(p.to), out);
    post_all(p.to, out);
  }
  void post_all(seat_id from, const box::letters& letters) {
    for (const auto& l : letters)
      if (all_.contains(l.to) && !dead_.contains(l.to)) posts_.push_back({from, l.to, l.what});
  }
  seat_list heard_by(seat_id s) const {
    seat_list out;
    for (const auto m : members_)
      if (m == s || (!dead_.contains(m) && !deaf_.contains({s, m}))) out.push_back(m);
    return out;
  }
  box::knowledge knows(seat_id s) {
    const auto& m = all_.at(s);
    return {{m.stand, heard_by(s), proved_[s]},
            [this, s](const testimonies& all) { return next_value(s, all); }};
  }
  std::optional<next> next_value(seat_id s, const testimonies& all) {
    const auto& m = all_.at(s);
    auto said = all;  // it may have promised some time ago
    said[s].hears = heard_by(s);
    said[s].dead = proved_[s];
    const membership_facts f{
        .members = members_,
        .witnesses = witnesses_,
        .said = said,
        .planned = m.plan,
        .brought = brought_,
        .survive = survive_,
        .disturbed = !dead_.empty() || !deaf_.empty(),
        .waits_for_word = m.waits,
        .has_all_state = [this](const seat_list&, version_id) { return state_is_here_; },
    };
    const auto n = next_members(f);
    if (n.as_planned) return next{*m.plan, value(*m.stand.whole)};
    if (n.is_decided()) return next{n.members, value(n.first)};
    said_.push_back("no view yet. " + std::string(text_of(n.why)));
    return std::nullopt;
  }

  seat_list members_, witnesses_, brought_;
  std::map<seat_id, member> all_;
  std::set<seat_id> dead_;
  std::set<std::pair<seat_id, seat_id>> deaf_;  // the first does not hear the second
  std::map<seat_id, seat_list> proved_;
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
