// What a solver does when the view changes around it: it holds, pauses, goes on, or goes back.
#include "actors/training/solver.hpp"

#include <utility>

namespace poseidon {

/// A worker that is ahead answers with a later clock, and all train up to the latest: so no worker has begun it.
void solver::on(const hold_clocks& m) {
  if (phase_ == phase::given_up) return;
  holds_in_ = m.epoch;
  if (phase_ != phase::training || nets_->turns.empty())
    return answer_hold(clock_has_begun(phase_ == phase::training));
  const clock_id clock{plan_.clock()};
  passes_.ask(clock, nets_->turns.size());
  tell_turns(clock);
}

/// The clock may have been issued meanwhile: then it had begun everywhere.
void solver::on(const passes_held& m) {
  if (const auto begun = passes_.answered(m))
    answer_hold(value(m.from) == plan_.clock() && clock_has_begun(*begun));
}

void solver::tell_turns(std::optional<clock_id> held_from) {
  for (const auto& layer : nets_->turns) tell(layer, hold_passes{held_from});
}

/// What has begun is finished.
void solver::answer_hold(bool has_begun) {
  if (has_begun || phase_ != phase::training) let_passes_go();
  tell(nets_->node_held, clocks_held{clock_id{plan_.hold(has_begun)}, holds_in_});
}

void solver::let_passes_go() {
  if (passes_.asking() || passes_.holding()) tell_turns(std::nullopt);
  passes_.released();
}

/// A test belongs to the clock that follows it: its batches are shared among the members of one view. So does a snapshot with which
/// a view begins: each view trains one clock at least. The last clock of a run that ends early was agreed on in this view, so it belongs
/// to this view: who joins with the next one would not know of the end.
bool solver::clock_has_begun(bool pass_has_begun) const {
  const bool trains = phase_ == phase::training;
  const bool begins_view = plan_.clock() == setup_.part.first_clock;
  return pass_has_begun || (trains && plan_.ends_early()) || phase_ == phase::testing ||
         (begins_view && (trains || phase_ == phase::copying)) ||
         tests_.completed_at(plan_.clock());
}

/// Passes of the clock that are held back are not computed: the graph that they are in ends.
void solver::on(const pause_at& m) {
  if (phase_ == phase::given_up) return;
  if (passes_.asking()) answer_hold(true);  // a change that was announced before
  plan_.pause_at(value(m.clock));
  pauses_in_ = m.epoch;
  const bool holds_passes = phase_ == phase::training && passes_.holding();
  const bool leaves_passes = holds_passes && value(m.clock) == plan_.clock();
  if (holds_passes && !leaves_passes) let_passes_go();
  // The others may pause before the test for which the leader waits.
  if (!leaves_passes && phase_ != phase::held && phase_ != phase::judging) return;
  phase_ = phase::idle;
  next();
}

/// Pauses when everything of the clocks before has been computed, sent and written, so that other actors may end.
void solver::pause_if_drained() {
  if (!fresh_.all(plan_.clock()) || snapshots_.pending() ||
      (reports_.has_outputs() && reports_.computed() < plan_.clock()))
    return;
  phase_ = phase::paused;
  tell(nets_->node_paused,
       training_paused{version_id{plan_.clock()}, tests_.completed(), pauses_in_});
}

void solver::on(const resume_training&) {
  if (phase_ != phase::paused) return;
  plan_.resume();
  phase_ = phase::idle;
  if (nets_->checkpointer && snapshots_.wanted() && !snapshots_.asked(plan_.clock()))
    snapshot_or_next();  // what was begun before is not complete
  else
    next();
  if (const auto reason = std::exchange(stop_wanted_, {}); !reason.empty()) on(stop_soon{reason});
}

void solver::on(const give_up_clocks&) {
  if (phase_ == phase::testing) tests_.give_up();
  passes_.released();
  phase_ = phase::given_up;
  tell(nets_->node_gave_up, clocks_given_up{});
}

/// Who trained has ended, so nothing of the clocks that are trained again comes any more.
void solver::on(const go_back& m) {
  const auto version = value(m.version);
  plan_.go_back(version);
  fresh_.go_back(version);
  reports_.go_back(version);
  tests_.go_back(version);
  snapshots_.go_back(version);
  was_lost_ = true;
  unjudged_ = false;
  phase_ = phase::paused;
}

}  // namespace poseidon
