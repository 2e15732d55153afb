#include "actors/training/solver.hpp"

#include "actors/core/trace.hpp"
#include "models/solver/solver_file.hpp"

#include <algorithm>
#include <utility>

namespace poseidon {

solver::solver(actor_context context, solver_setup setup)
    : actor(context),
      setup_(std::move(setup)),
      loss_(static_cast<std::size_t>(std::max(1, setup_.spec.average_loss()))),
      board_(setup_.workers) {
  end_version_ = static_cast<std::uint64_t>(std::max(0, setup_.spec.max_iter()));
  tested_phases_ = setup_.test_phases;
}

void solver::on(const connect_solver& m) {
  nets_ = m;
  outputs_ = {m.train.outputs.size(), std::size_t{setup_.replicas} * setup_.micro_batches};
}

void solver::on(const begin_training& m) {
  first_clock_ = clock_ = computed_ = value(m.first_clock);
  show_step(first_clock_);
  next();
}

void solver::show_step(std::uint64_t done) const {
  if (!setup_.display) return;
  const auto carried = setup_.carried ? setup_.carried() : traffic{};
  setup_.display->stepped({done, end_version_, (done - first_clock_) * setup_.images_of_all,
                           carried.bytes_out, carried.bytes_in});
}

// -- clocks ---------------------------------------------------------------------------------------------

/// At a clock boundary: does what is due.
void solver::next() {
  if (phase_ == phase::done) return;
  if (clock_ >= end_version_) {
    phase_ = phase::finishing;
    finish();
  } else if (pause_clock_ == clock_) {
    phase_ = phase::draining;
    pause_if_drained();
  } else if (held_clock_ == clock_) {
    phase_ = phase::held;
  } else if (test_due()) {
    start_test(0);
  } else if (setup_.barrier && !fresh(clock_)) {
    phase_ = phase::waiting;
  } else {
    phase_ = phase::training;
    micro_batch_ = 0;
    start_micro_batch();
  }
}

void solver::start_micro_batch() {
  issued_ = 0;
  for (std::uint32_t r = 0; r < setup_.replicas; ++r) {
    const auto first = setup_.first_sample(clock_ - first_clock_, micro_batch_, r);
    for (const auto& source : nets_->train.sources[r])
      tell(source, start_pass{{clock_id{clock_}, micro_batch_, first}});
  }
}

void solver::on(const pass_issued& m) {
  if (m.test_net >= 0) {
    if (phase_ != phase::testing) return;  // of a test that was given up
    test_.issued(value(m.replica), nets_->tests[test_net_].sources[value(m.replica)].size());
    start_test_passes(value(m.replica));
    end_test_if_finished();
    return;
  }
  const auto data_layers = nets_->train.sources[0].size();
  if (phase_ != phase::training || ++issued_ < data_layers * setup_.replicas) return;
  if (++micro_batch_ < setup_.micro_batches) {
    start_micro_batch();
    return;
  }
  ++clock_;
  images_ += setup_.images_per_clock;
  if (snapshot_due()) {
    phase_ = phase::copying;
    copy_if_fresh();
  } else {
    next();
  }
}

void solver::on(const layer_fresh& m) {
  const auto version = value(m.version);
  if (++fresh_layers_[version] < setup_.layers_that_learn) return;
  fresh_layers_.erase(version);
  fresh_version_ = version;
  if (nets_->train.outputs.empty() && version > first_clock_) show_step(version);
  if (phase_ == phase::waiting) next();
  if (phase_ == phase::copying) copy_if_fresh();
  if (phase_ == phase::draining) pause_if_drained();
  if (phase_ == phase::finishing) finish();
}

// -- outputs --------------------------------------------------------------------------------------------

void solver::on(const outputs_ready& m) {
  if (m.test_net >= 0) {
    if (phase_ != phase::testing) return;
    test_.computed(value(m.replica), m.output, m.values);
    test_passes_->store(test_.computed(), std::memory_order_relaxed);
    start_test_passes(value(m.replica));
    end_test_if_finished();
  } else if (auto sums =
                 outputs_.add(value(m.pass.clock), m.output, m.values,
                              setup_.weights.empty() ? 1 : setup_.weights.at(value(m.replica)))) {
    clock_computed(value(m.pass.clock), std::move(*sums));
    if (phase_ == phase::draining) pause_if_drained();
  }
}

void solver::clock_computed(std::uint64_t clock, std::vector<double> sums) {
  computed_ = clock + 1;
  show_step(computed_);
  const auto passes =
      (setup_.weights.empty() ? static_cast<double>(setup_.replicas) : 1) * setup_.micro_batches;
  for (auto& sum : sums) sum /= passes;
  sums.insert(sums.begin(), loss_.add(weighted_loss(sums, nets_->train.outputs)));
  const auto display = static_cast<std::uint64_t>(std::max(0, setup_.spec.display()));
  if (display == 0 || (clock % display != 0 && clock + 1 != end_version_)) return;
  const auto overlap = setup_.overlap->read(now_ns());
  // Outputs may overtake the pass_issued of their pass, so images_ may lag here.
  const std::uint64_t images = (computed_ - first_clock_) * setup_.images_per_clock;
  report({clock_id{clock}, -1, 1, std::move(sums), images, overlap.communication_ns,
          overlap.exposed_ns});
}

void solver::report(frames::worker_report r) {
  if (value(setup_.self) == 0)
    take(setup_.self, r);
  else
    tell(nets_->to_first, send_frame{std::move(r), {}, 0});
}

void solver::on(const control_arrived& m) {
  if (const auto* r = std::get_if<frames::worker_report>(&m.header)) take(m.from, *r);
}

void solver::take(worker_id from, const frames::worker_report& r) {
  if (value(setup_.self) != 0) return;
  auto merged = board_.add(from, r);
  if (!merged || setup_.display == nullptr) return;
  const auto clock = value(r.clock);
  if (r.test_net >= 0) {
    const auto net = static_cast<std::size_t>(r.test_net);
    auto outputs = nets_->tests.at(net).outputs;
    if (setup_.spec.test_compute_loss()) {
      merged->means.push_back(weighted_loss(merged->means, outputs));
      outputs.push_back({"test_loss", 0});
    }
    setup_.display->tested(net, clock, merged->means, outputs);
  } else {
    setup_.display->trained({clock,
                             end_version_,
                             merged->means.front(),
                             {merged->means.begin() + 1, merged->means.end()},
                             learning_rate(setup_.spec, clock),
                             merged->images,
                             merged->communication_ns,
                             merged->exposed_ns},
                            nets_->train.outputs);
  }
}

void solver::on(const nonfinite_found& m) {
  if (phase_ == phase::done) return;
  phase_ = phase::done;
  tell(
      nets_->node_failed,
      training_failed{
          "training diverged at clock " + std::to_string(value(m.pass.clock)) + ": layer \"" +
              m.layer + "\" produced the first NaN or infinity. Likely cause: the learning rate (" +
              std::to_string(learning_rate(setup_.spec, value(m.pass.clock))) +
              ") is too high; try a tenth of it, or check the data for such values. "
              "The last snapshot is untouched.",
          4});
}

// -- test phases ----------------------------------------------------------------------------------------

bool solver::test_due() const {
  const auto interval = static_cast<std::uint64_t>(std::max(0, setup_.spec.test_interval()));
  return !nets_->tests.empty() && interval > 0 && clock_ % interval == 0 &&
         tested_clock_ != clock_ && (clock_ > 0 || setup_.spec.test_initialization());
}

void solver::start_test(std::size_t net) {
  phase_ = phase::testing;
  test_net_ = net;
  const auto& n = nets_->tests[net];
  test_ = {n.share, n.outputs.size()};
  show_test();
  for (std::uint64_t r = 0; r < setup_.replicas; ++r) start_test_passes(r);
  end_test_if_finished();
}

void solver::show_test() {
  test_passes_ = std::make_shared<std::atomic<std::uint64_t>>(0);
  test_shown_.reset();
  if (!setup_.display) return;
  long_task task;
  task.what = nets_->tests.size() > 1 ? "test net " + std::to_string(test_net_) : "testing";
  task.total = test_.passes();
  task.done = [passes = test_passes_] { return passes->load(std::memory_order_relaxed); };
  task.training_pauses = true;
  test_shown_ = setup_.display->working(std::move(task));
}

void solver::start_test_passes(std::uint64_t replica) {
  const auto& n = nets_->tests[test_net_];
  const auto index = test_.start(replica);
  if (!index) return;
  const auto first = n.share.first_sample(tested_phases_, replica, *index);
  for (const auto& source : n.sources[replica])
    tell(source, start_pass{{clock_id{clock_}, static_cast<std::uint32_t>(*index), first}});
}

void solver::end_test_if_finished() {
  if (phase_ != phase::testing || !test_.finished()) return;
  test_shown_.reset();
  report({clock_id{clock_}, static_cast<std::int32_t>(test_net_),
          static_cast<std::uint32_t>(test_.passes()), test_.sums(), images_});
  if (test_net_ + 1 < nets_->tests.size()) {
    start_test(test_net_ + 1);
    return;
  }
  tested_clock_ = clock_;
  ++tested_phases_;
  phase_ = phase::idle;
  next();
}

// -- snapshots and the end ------------------------------------------------------------------------------

bool solver::snapshot_due() const {
  const auto interval = static_cast<std::uint64_t>(std::max(0, setup_.spec.snapshot()));
  return nets_->checkpointer && interval > 0 && clock_ % interval == 0;
}

void solver::copy_if_fresh() {
  if (!fresh(clock_) || snapshot_version_ == clock_) return;
  snapshot_version_ = clock_;
  ++snapshots_pending_;
  const handle<solver> self(this);
  const auto samples = setup_.first_sample(clock_ - first_clock_, 0, 0);
  tell(nets_->checkpointer,
       write_snapshot{version_id{clock_}, samples, tested_phases_, true, self, self});
}

void solver::on(const snapshot_copied&) {
  phase_ = phase::idle;
  next();
}

void solver::on(const snapshot_written& m) {
  if (snapshots_pending_ > 0) --snapshots_pending_;
  snapshot_error_ = m.error;
  if (setup_.display) setup_.display->snapshot(value(m.version), m.path, m.error);
  if (phase_ == phase::draining) pause_if_drained();
  if (phase_ == phase::finishing) finish();
}

void solver::on(const stop_soon& m) {
  if (phase_ == phase::finishing || phase_ == phase::done) return;
  if (phase_ == phase::paused) {  // all nodes rebuild their graphs: none could end now
    stop_wanted_ = m.reason;
    return;
  }
  // The clock in work is finished; one that has not begun never begins.
  const auto end = std::max(least_end_, phase_ == phase::training ? clock_ + 1 : clock_);
  tell(nets_->node_stop, stop_decided{clock_id{end - 1}, m.reason});
  on(finish_after{clock_id{end - 1}, m.reason});
}

void solver::on(const finish_after& m) {
  end_version_ = std::min(end_version_, value(m.clock) + 1);
  stopped_early_ = true;
  // A worker that was ahead has begun a clock, or a test of a version, that no other worker will: it is left incomplete.
  if ((phase_ == phase::training && clock_ >= end_version_) ||
      (phase_ == phase::testing && clock_ > end_version_) ||
      ((phase_ == phase::held || phase_ == phase::draining || phase_ == phase::paused) &&
       clock_ >= end_version_)) {
    phase_ = phase::finishing;
    clock_ = end_version_;
    finish();
  }
}

bool solver::fresh(std::uint64_t version) const {
  return setup_.layers_that_learn == 0 || fresh_version_ >= version;
}

/// Called at the end, and again whenever something that it waits for has happened.
void solver::finish() {
  if (!fresh(end_version_)) return;
  if (nets_->checkpointer && snapshot_version_ != clock_ && setup_.spec.snapshot_after_train() &&
      clock_ > first_clock_) {
    phase_ = phase::copying;
    copy_if_fresh();
    return;
  }
  if (!stopped_early_ && test_due()) {
    start_test(0);
    return;
  }
  if (snapshots_pending_ > 0) return;
  phase_ = phase::done;
  tell(nets_->node_done, training_done{version_id{clock_}, images_, snapshot_error_});
}

// -- changes of routes ----------------------------------------------------------------------------------

/// A worker that is ahead answers with a later clock, and all train up to the latest: so no worker has begun it.
void solver::on(const hold_clocks&) {
  held_clock_ = phase_ == phase::training ? clock_ + 1 : clock_;
  tell(nets_->node_held, clocks_held{clock_id{*held_clock_}});
}

void solver::on(const pause_at& m) {
  pause_clock_ = value(m.clock);
  held_clock_.reset();
  if (phase_ != phase::held) return;
  phase_ = phase::idle;
  next();
}

/// Pauses when everything of the clocks before has been computed, sent and written, so that other actors may end.
void solver::pause_if_drained() {
  if (!fresh(clock_) || snapshots_pending_ > 0 ||
      (!nets_->train.outputs.empty() && computed_ < clock_))
    return;
  phase_ = phase::paused;
  tell(nets_->node_paused, training_paused{version_id{clock_}, tested_phases_});
}

void solver::on(const resume_training&) {
  if (phase_ != phase::paused) return;
  if (pause_clock_ == clock_) pause_clock_.reset();  // else it belongs to the next change
  // Solver state may still travel to its new owner; it has arrived when the next version exists.
  least_end_ = clock_ + 1;
  phase_ = phase::idle;
  next();
  if (const auto reason = std::exchange(stop_wanted_, {}); !reason.empty()) on(stop_soon{reason});
}

void solver::on(const shut_down&) {
  test_shown_.reset();
  quit();
}

}  // namespace poseidon
