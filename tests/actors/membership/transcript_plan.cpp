// The leader's plan of the views, played by actors/membership/view_plan.
#include "actors/membership/view_plan.hpp"
#include "messages/overloaded.hpp"
#include "tests/actors/membership/plan_rig.hpp"
#include "tests/actors/membership/transcript_stages.hpp"

#include <optional>
#include <stdexcept>
#include <variant>

namespace poseidon::transcript {

namespace {

std::string members_text(const std::vector<frames::member>& members) {
  std::vector<seat_id> seats;
  for (const auto& m : members) seats.push_back(m.seat);
  return seats_text(seats);
}

std::string text_of(const plan::action& action) {
  const auto number = [](auto id) { return std::to_string(value(id)); };
  return std::visit(
      overloaded{
          [](const plan::agree_on_first_view& a) {
            return "the first view is " + members_text(a.members);
          },
          [](const plan::begin_view&) { return std::string("all are told to train"); },
          [](const plan::hold_all&) { return std::string("all are asked what they would begin"); },
          [&](const plan::drain_all& a) { return "all are to train up to " + number(a.clock); },
          [&](const plan::others_wait& a) {
            return "all others wait for the leader at " + number(a.clock);
          },
          [](const plan::propose_view& a) {
            return "view " + std::to_string(a.epoch) + " is proposed: " + members_text(a.members) +
                   (a.routes ? ", with other routes" : "");
          },
          [](const plan::collect_leavers&) {
            return std::string("others have a moment to leave, too");
          },
          [](const plan::end_run&) { return std::string("the run ends with a snapshot"); },
          [](const plan::all_are_done&) { return std::string("the run is done"); },
      },
      action);
}

class planner final : public stage {
 public:
  answers play(const event& e) override {
    if (!plan_) {
      if (e.words != "leads a run of" || e.numbers.size() != 1) fail();
      plan_.emplace(view_plan_setup{.workers = e.numbers.front(),
                                    .members = {test::member_of_seat(value(e.seats.at(0)))}});
    } else {
      happen(e);
    }
    answers out;
    while (const auto action = plan_->take_action()) {
      if (const auto* collect = std::get_if<plan::collect_leavers>(&*action))
        moment_ = collect->epoch;
      out.push_back(text_of(*action));
    }
    return out;
  }

 private:
  [[noreturn]] static void fail() { throw std::invalid_argument("the plan knows no such event"); }

  void happen(const event& e) {
    const auto& w = e.words;
    const auto number = e.numbers.empty() ? 0 : e.numbers.front();
    if (w == "all begin") return plan_->began();
    if (w == "other routes are wanted") return plan_->wants({{0, 1}, std::nullopt, "", 0});
    if (w == "other routes are wanted from") return plan_->wants({{0, 1}, clock_id{number}, "", 0});
    if (w == "the moment is over") return plan_->leavers_collected(moment_);
    if (w == "nobody waits for the schedule any more") return plan_->schedule_ends();
    if (e.seats.empty()) fail();
    for (const auto s : e.seats) {
      if (w == "joins" || w == "join")
        plan_->joined(test::member_of_seat(value(s)));
      else if (w == "is ready for view" || w == "are ready for view")
        plan_->ready(s, number);
      else if (w == "is ready to join")
        plan_->newcomer_ready(test::member_of_seat(value(s)));
      else if (w == "is gone")
        plan_->newcomer_gone(s);
      else if (w == "leaves" || w == "leave")
        plan_->leaves(s);
      else if (w == "would begin")
        plan_->holds(s, clock_id{number});
      else if (w == "has drained" || w == "have drained")
        plan_->drained(s, clock_id{number});
      else if (w == "is done at" || w == "are done at")
        plan_->done(s, version_id{number});
      else
        fail();
    }
  }

  std::optional<view_plan> plan_;
  std::uint64_t moment_ = 0;
};

}  // namespace

std::unique_ptr<stage> plan_stage() {
  return std::make_unique<planner>();
}

}  // namespace poseidon::transcript
