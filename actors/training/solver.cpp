#include "actors/training/solver.hpp"

#include "models/solver/outer_steps.hpp"

#include <algorithm>
#include <utility>

namespace poseidon {

solver::solver(actor_context context, solver_setup setup)
    : actor(context),
      setup_(std::move(setup)),
      plan_(clocks_of(setup_.spec, setup_.spec.max_iter())),
      fresh_(setup_.layers_that_learn),
      reports_(setup_),
      tests_(setup_),
      snapshots_(clocks_of(setup_.spec, setup_.spec.snapshot())) {}

void solver::on(const connect_solver& m) {
  // The disk of who has led before may be gone with it, and a file that it had begun is not complete.
  if (std::exchange(was_lost_, false) && m.checkpointer && !nets_->checkpointer)
    snapshots_.take_over();
  nets_ = m;
  passes_.released();  // those who held them back have ended
  reports_.leave_part(m.part.first_clock);
  setup_.part = m.part;
  if (leads() && !std::exchange(led_, true)) {
    goals_ = run_goals(setup_.spec);
    goals_.begin(std::chrono::steady_clock::now());
  }
  reports_.connect(m.train.outputs);
}

void solver::on(const begin_training& m) {
  plan_.begin(value(m.first_clock));
  goals_.begin(std::chrono::steady_clock::now());
  reports_.begin(plan_.first());
  reports_.show_step(plan_.first(), plan_.end());
  next();
}

// -- clocks ---------------------------------------------------------------------------------------------

/// At a clock boundary: does what is due.
void solver::next() {
  if (phase_ == phase::done) return;
  switch (plan_.next()) {
    case clock_plan::step::end:
      phase_ = phase::finishing;
      return finish();
    case clock_plan::step::pause:
      phase_ = phase::draining;
      return pause_if_drained();
    case clock_plan::step::hold:
      phase_ = phase::held;
      return;
    case clock_plan::step::train:
      break;
  }
  if (passes_.asking()) {
    phase_ = phase::held;
    return;
  }
  if (test_due()) {
    start_test(0);
  } else if (unjudged_) {
    judge();
  } else if (setup_.barrier && !fresh_.all(plan_.clock())) {
    phase_ = phase::waiting;
  } else {
    phase_ = phase::training;
    micro_batch_ = 0;
    start_micro_batch();
  }
}

void solver::start_micro_batch() {
  issued_ = 0;
  for (std::uint32_t r = 0; r < setup_.part.replicas; ++r) {
    const auto first = first_sample(micro_batch_, r);
    for (const auto& source : nets_->train.sources[r])
      tell(source, start_pass{{clock_id{plan_.clock()}, micro_batch_, first}});
  }
}

std::uint64_t solver::first_sample(std::uint32_t micro_batch, std::uint32_t replica) const {
  return setup_.part.first_sample(plan_.clock() - setup_.part.first_clock, micro_batch, replica);
}

void solver::on(const pass_issued& m) {
  if (m.test_net >= 0) {
    if (phase_ != phase::testing) return;  // of a test that was given up
    const auto replica = value(m.replica);
    tests_.issued(replica, nets_->tests[tests_.net()].sources[replica].size());
    start_test_passes(replica);
    end_test_if_finished();
    return;
  }
  const auto data_layers = nets_->train.sources[0].size();
  if (phase_ != phase::training || ++issued_ < data_layers * setup_.part.replicas) return;
  if (++micro_batch_ < setup_.part.micro_batches) {
    start_micro_batch();
    return;
  }
  plan_.advance();
  images_ += setup_.part.images_per_clock;
  // What a test finds decides which files are written, so that each version is gathered once.
  if (goals_.any() && test_due())
    next();
  else
    snapshot_or_next();
}

void solver::snapshot_or_next() {
  if (nets_->checkpointer && snapshots_.due(plan_.clock()).any()) {
    phase_ = phase::copying;
    copy_if_fresh();
  } else {
    next();
  }
}

void solver::on(const layer_fresh& m) {
  const auto version = value(m.version);
  if (!fresh_.reached(version) || phase_ == phase::given_up) return;
  for (const auto& branch : nets_->side_branches) tell(branch, parameters_whole{m.version});
  if (const auto lag = setup_.part.floor_lag; lag && snapshots_.pending() && version >= *lag)
    tell(nets_->floor, floor_reached{version_id{version - *lag}});
  if (!reports_.has_outputs() && version > plan_.first()) reports_.show_step(version, plan_.end());
  if (phase_ == phase::waiting) next();
  if (phase_ == phase::copying) copy_if_fresh();
  if (phase_ == phase::draining) pause_if_drained();
  if (phase_ == phase::finishing) finish();
}

// -- outputs --------------------------------------------------------------------------------------------

void solver::on(const outputs_ready& m) {
  if (phase_ == phase::given_up) return;
  if (m.test_net >= 0) {
    if (phase_ != phase::testing) return;
    tests_.computed(value(m.replica), m.output, m.values);
    start_test_passes(value(m.replica));
    end_test_if_finished();
  } else if (reports_.add(m)) {
    reports_.show_step(reports_.computed(), plan_.end());
    if (auto r = reports_.report(plan_.end())) report(std::move(*r));
    if (phase_ == phase::draining) pause_if_drained();
  }
}

void solver::report(frames::worker_report r) {
  if (leads())
    reported(setup_.part.self, r);
  else
    tell(nets_->to_leader, send_frame{std::move(r), {}, 0});
}

void solver::on(const control_passed& m) {
  const auto* r = std::get_if<frames::worker_report>(&m.header);
  if (r != nullptr && leads() && phase_ != phase::given_up) reported(m.from, *r);
}

void solver::reported(worker_id from, const frames::worker_report& r) {
  const auto test = reports_.take(from, r, plan_.end(), nets_->tests);
  if (test) goals_.take(*test, std::chrono::steady_clock::now());
  if (phase_ == phase::judging) judge();
}

void solver::on(const nonfinite_found& m) {
  if (phase_ == phase::done || phase_ == phase::given_up) return;
  phase_ = phase::done;
  tell(nets_->node_failed, divergence(m, setup_.spec));
}

// -- test phases ----------------------------------------------------------------------------------------

/// Who ends a run early does not want to wait for a test.
bool solver::test_due() const {
  return !nets_->tests.empty() && !plan_.ends_early() && tests_.due(plan_.clock());
}

void solver::start_test(std::size_t net) {
  phase_ = phase::testing;
  tests_.begin(net, nets_->tests);
  for (std::uint64_t r = 0; r < setup_.part.replicas; ++r) start_test_passes(r);
  end_test_if_finished();
}

void solver::start_test_passes(std::uint64_t replica) {
  const auto pass = tests_.start(replica);
  if (!pass) return;
  for (const auto& source : nets_->tests[tests_.net()].sources[replica])
    tell(source, start_pass{{clock_id{plan_.clock()}, pass->index, pass->first_sample}});
}

void solver::end_test_if_finished() {
  if (phase_ != phase::testing || !tests_.finished()) return;
  if (!tests_.given_up()) {
    report(tests_.report(plan_.clock(), images_));
    if (tests_.net() + 1 < nets_->tests.size()) return start_test(tests_.net() + 1);
    tests_.complete(plan_.clock());
    unjudged_ = goals_.any();
  }
  phase_ = phase::idle;
  next();
}

/// No clock begins before the other nodes' tests are in: the model that is kept is the one that was tested.
void solver::judge() {
  phase_ = phase::judging;
  const auto answer = goals_.verdict(plan_.clock());
  if (!answer) return;
  unjudged_ = false;
  phase_ = phase::idle;
  if (setup_.display && !answer->note.empty()) setup_.display->note(answer->note);
  if (answer->best) snapshots_.want_best();
  if (!answer->enough.empty()) on(stop_soon{answer->enough});
  snapshot_or_next();
}

// -- snapshots and the end ------------------------------------------------------------------------------

void solver::copy_if_fresh() {
  const auto clock = plan_.clock();
  if (!fresh_.all(clock) || snapshots_.asked(clock)) return;
  auto files = snapshots_.due(clock);
  files.regular = files.regular || last_snapshot_due();
  snapshots_.ask(clock);
  const handle<solver> self(this);
  tell(nets_->checkpointer,
       write_snapshot{.version = version_id{clock},
                      .samples = setup_.part.first_sample(clock - setup_.part.first_clock, 0, 0),
                      .test_phases = tests_.completed_before(clock),
                      .copied = self,
                      .written = self,
                      .regular = files.regular,
                      .best = files.best,
                      .at_floor = setup_.part.floor_lag.has_value(),
                      .number = snapshots_.number(),
                      .epoch = setup_.part.epoch});
}

/// The one after training.
bool solver::last_snapshot_due() const {
  return setup_.spec.snapshot_after_train() && plan_.clock() == plan_.end() &&
         plan_.clock() > plan_.first();
}

void solver::on(const snapshot_copied& m) {
  if (!snapshots_.copied(m.number) || phase_ != phase::copying) return;  // it has gone back
  phase_ = phase::idle;
  next();
}

void solver::on(const snapshot_written& m) {
  snapshots_.written(m.error);
  if (setup_.display) {
    const auto iteration = iteration_of(setup_.spec, value(m.version));
    if (!m.path.empty()) setup_.display->snapshot(iteration, m.path, m.error);
    if (!m.best_path.empty()) setup_.display->snapshot(iteration, m.best_path, m.error);
  }
  if (phase_ == phase::draining) pause_if_drained();
  if (phase_ == phase::finishing) finish();
}

/// After the clock in work: then all of its gradients have been added.
void solver::on(const snapshot_soon&) {
  snapshots_.want();
}

void solver::on(const stop_soon& m) {
  if (phase_ == phase::finishing || phase_ == phase::done) return;
  if (phase_ == phase::paused ||
      phase_ == phase::given_up) {  // all nodes rebuild their graphs: none could end now
    stop_wanted_ = m.reason;
    return;
  }
  const version_id end{plan_.soonest_end(phase_ == phase::training && !passes_.holding())};
  tell(nets_->node_stop, stop_decided{end, m.reason});
  on(finish_after{end, m.reason});
}

void solver::on(const finish_after& m) {
  if (phase_ == phase::given_up) return;  // the members of the next view decide it again
  plan_.end_at(value(m.version));
  if (auto r = reports_.last_report(plan_.end())) {
    reports_.show_step(plan_.end(), plan_.end());
    report(std::move(*r));
  }
  const auto clock = plan_.clock(), end = plan_.end();
  const bool testing = phase_ == phase::testing;
  if (testing) tests_.give_up();
  unjudged_ = false;  // the others give their tests up, so no verdict will come
  if (phase_ == phase::judging) {
    phase_ = phase::idle;
    return snapshot_or_next();
  }
  // A worker that was ahead has begun a clock, or a test of a version, that no other worker will: it is left incomplete.
  if ((testing && clock > end) || ((phase_ == phase::training || phase_ == phase::held ||
                                    phase_ == phase::draining || phase_ == phase::paused) &&
                                   clock >= end)) {
    phase_ = phase::finishing;
    plan_.leave_what_is_beyond();
    finish();
  } else if (testing) {
    end_test_if_finished();
  }
}

/// Called at the end, and again whenever something that it waits for has happened.
void solver::finish() {
  if (!fresh_.all(plan_.end())) return;
  if (goals_.any() && test_due()) return start_test(0);
  if (unjudged_) return judge();
  const auto due = snapshots_.due(plan_.clock());
  if (nets_->checkpointer && !snapshots_.asked(plan_.clock()) &&
      (last_snapshot_due() || due.best || (due.regular && plan_.clock() > plan_.first()))) {
    phase_ = phase::copying;
    copy_if_fresh();
    return;
  }
  if (test_due()) return start_test(0);
  if (snapshots_.pending()) return;
  phase_ = phase::done;
  tell(nets_->node_done, training_done{version_id{plan_.clock()}, images_, snapshots_.error()});
}

void solver::on(const shut_down&) {
  tests_.give_up();
  quit();
}

}  // namespace poseidon
