// tests/actors/membership/change_rig.hpp - one node's view_change and what it knows, for tests.
#pragma once
#include "actors/membership/view_change.hpp"
#include "tests/actors/membership/seats.hpp"

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace poseidon::test {

/// Member `self` of view 2, of seats 0, 1 and 2, which begins with iteration 10.
struct change_rig {
  agreed_view view;
  view_change change;
  seat_list linked{seat_id{0}, seat_id{1}, seat_id{2}};
  std::optional<version_id> whole = version_id{17};
  std::vector<std::string> layers_gone;
  view_facts::former_state former = view_facts::former_state::gone;
  std::uint32_t survive = 1;
  std::size_t keepers = 1;
  bool leaves = false, leads = false, zeroes = false, wants_end = false;
  view_change::time_point now{std::chrono::hours{12}};

  explicit change_rig(std::uint32_t self = 1, bool trains = true) {
    view.epoch = 2;
    view.seat = seat_id{self};
    view.first_clock = clock_id{10};
    for (const auto s : {0u, 1u, 2u})
      view.members.push_back({seat_id{s}, "n:" + std::to_string(s)});
    view.before = {seat_id{0}, seat_id{1}, seat_id{2}};
    if (trains) (void)change.begins(now);
  }
  view_facts facts() const {
    view_facts f{.view = view, .linked = linked, .survive = survive, .versions = 4};
    f.keepers = keepers;
    f.former = former;
    f.leaves = leaves;
    f.leads = leads;
    f.zeroes_lost_state = zeroes;
    f.wants_end = wants_end;
    f.whole_version = [this] { return whole; };
    f.layers_without_state = [this](const frames::next_view&) { return layers_gone; };
    f.as_told = [this] {
      return frames::next_view{view.epoch, view.first_clock, view.members, {}};
    };
    return f;
  }
  /// The view of these that follows, from a clock on.
  frames::next_view next_of(std::initializer_list<std::uint32_t> seats, std::uint64_t clock,
                            std::uint64_t epoch = 3) const {
    frames::next_view n{epoch, clock_id{clock}, {}, {}};
    for (const auto s : seats) n.members.push_back({seat_id{s}, "n:" + std::to_string(s)});
    return n;
  }
  void drain(std::uint64_t clock) {
    (void)change.drains(clock_id{clock});
    (void)change.has_drained(3, now);
  }
  void freeze(std::set<view_change::task> tasks = {}, std::set<seat_id> links = {}) {
    change.freeze(std::move(tasks), std::move(links), now, facts());
  }
  /// A member's question, which no other one of its ballot precedes.
  void asked_by(std::uint32_t seat, std::uint32_t round = 1) {
    change.hears(seat_id{seat}, frames::view_prepare{2, {round, seat_id{seat}}}, facts());
  }
  /// All that it wants to be done, in words; what it says of a pause only if it is paused.
  std::vector<std::string> actions() {
    std::vector<std::string> out;
    while (const auto a = change.take_action())
      if (auto text = text_of(*a); !text.empty()) out.push_back(std::move(text));
    return out;
  }
  static std::string text_of(const view_action::action& a);
};

inline std::string change_rig::text_of(const view_action::action& a) {
  using namespace view_action;
  struct words {
    static std::string seats(const frames::next_view& n) {
      std::string out;
      for (const auto& m : n.members) out += " " + std::to_string(value(m.seat));
      return out;
    }
    std::string operator()(const send& s) const {
      const auto to = " to " + std::to_string(value(s.to));
      if (const auto* v = std::get_if<frames::next_view>(&s.frame))
        return "tell view " + std::to_string(v->epoch) + to;
      if (std::holds_alternative<frames::view_prepare>(s.frame)) return "prepare" + to;
      if (std::holds_alternative<frames::view_promise>(s.frame)) return "promise" + to;
      if (std::holds_alternative<frames::view_accept>(s.frame)) return "accept" + to;
      return "accepted" + to;
    }
    std::string operator()(const view_action::freeze&) const { return "freeze"; }
    std::string operator()(const tell_newcomers& t) const {
      return "tell newcomers of view " + std::to_string(t.next.epoch);
    }
    std::string operator()(const follow& f) const {
      return "follow to view " + std::to_string(f.next.epoch) + " of" + seats(f.next) + " from " +
             std::to_string(value(f.next.first_clock)) + (f.unplanned ? ", unplanned" : "") +
             (f.zeroed.empty() ? "" : ", with zeros");
    }
    std::string operator()(const release&) const { return "release"; }
    std::string operator()(const end_graph& e) const {
      constexpr const char* of[] = {"state is released", "former state is taken",
                                    "view is replaced"};
      return std::string("end graph: ") + of[static_cast<int>(e.of)];
    }
    std::string operator()(const build&) const { return "build"; }
    std::string operator()(const show_pause& p) const {
      return p.why.empty() ? "" : p.is_news ? "say that it is paused" : "is paused";
    }
    std::string operator()(const end_run& e) const {
      constexpr const char* of[] = {"left out",      "newcomers alone",   "version is gone",
                                    "state is gone", "values never came", "told to end"};
      return std::string("end: ") + of[static_cast<int>(e.of)];
    }
  };
  return std::visit(words{}, a);
}

}  // namespace poseidon::test
