#include "actors/training/layer.hpp"

#include "actors/core/logic_bug.hpp"
#include "actors/core/trace.hpp"

#include <utility>

namespace poseidon {

layer::layer(actor_context context, layer_setup setup) : actor(context) {
  setup_ = std::move(setup);
}

void layer::on(const connect_layer& m) {
  neighbours_ = m;
}

void layer::enter(const pass_id& p) {
  if (forward_issued_ || bottoms_here_ > 0)
    throw logic_bug("a pass begins inside another", value(p.clock), value(pass_.clock));
  pass_ = p;
}

// -- forward --------------------------------------------------------------------------------------------

void layer::on(const batch_ready& m) {
  enter(m.pass);
  batch_ = m.values;
  ++bottoms_here_;
  forward_if_ready();
}

void layer::on(const bottom_ready& m) {
  if (bottoms_here_ == 0)
    enter(m.pass);
  else if (m.pass != pass_)
    throw logic_bug("a bottom of another pass", value(m.pass.clock), value(pass_.clock));
  ++bottoms_here_;
  forward_if_ready();
}

void layer::on(const parameters_fresh& m) {
  fresh_ = m;
  if (setup_->copy_in) tell(setup_->copy_in, setup_->work->copy_parameters());
  forward_if_ready();
}

bool layer::parameters_fresh_enough() const {
  if (setup_->waits_for == parameter_wait::none) return true;
  if (!fresh_) return false;
  if (setup_->waits_for == parameter_wait::any) return true;
  const auto newest = value(fresh_->version) + setup_->staleness, clock = value(pass_.clock);
  if (setup_->passes_per_update == 0) return newest >= clock;
  return newest > clock ||
         (newest == clock && fresh_->own_updates >= pass_.index / setup_->passes_per_update);
}

void layer::forward_if_ready() {
  const auto bottoms = setup_->is_source ? 1 : neighbours_->producers.size();
  if (forward_issued_ || bottoms_here_ < bottoms || bottoms == 0) return;
  if (!parameters_fresh_enough()) {
    // The wait for the first values is no stall of training.
    if (fresh_ && waits_since_ns_ == 0) waits_since_ns_ = now_ns();
    return;
  }
  if (is_held()) return;
  forward_issued_ = true;
  if (neighbours_->held) begun_ = pass_.clock;
  auto work = setup_->work->forward(pass_, std::move(batch_));
  work.waited_since_ns = std::exchange(waits_since_ns_, 0);
  if (work.results.read_outputs) work.results.reply = handle<layer>(this);
  tell(setup_->stream, std::move(work));
  for (const auto& consumer : neighbours_->consumers) tell(consumer, bottom_ready{pass_});
  backward_if_ready();
}

// -- backward -------------------------------------------------------------------------------------------

void layer::on(const top_diff_ready& m) {
  if (m.pass != pass_)
    throw logic_bug("a diff of another pass", value(m.pass.clock), value(pass_.clock));
  ++top_diffs_here_;
  backward_if_ready();
}

void layer::backward_if_ready() {
  if (!forward_issued_ || top_diffs_here_ < neighbours_->consumers.size()) return;
  if (gradients_in_use_ > 0) return;
  issue_backward();
  // This pass has ended here before the neighbours hear of it: they may start the next one.
  forward_issued_ = false;
  bottoms_here_ = top_diffs_here_ = 0;
  for (const auto& producer : neighbours_->producers) tell(producer, top_diff_ready{pass_});
  const auto& place = setup_->work->place();
  if (setup_->is_source) tell(setup_->issued, pass_issued{place.replica, place.test_net, pass_});
}

void layer::issue_backward() {
  const bool contributes =
      setup_->gradient && (pass_.index + 1) % setup_->gradient->passes_added == 0;
  auto work = setup_->work->backward(pass_, contributes);
  if (!work) return;
  if (contributes) {
    work->results.reply = handle<layer>(this);
    if (setup_->gradient->reuse != gradient_reuse::immediately) ++gradients_in_use_;
  }
  tell(setup_->stream, std::move(*work));
}

void layer::release_gradient(gradient_reuse because) {
  if (!setup_->gradient || setup_->gradient->reuse != because) return;
  --gradients_in_use_;
  backward_if_ready();
}

void layer::on(const work_done& m) {
  const auto& place = setup_->work->place();
  if (!m.backward)
    return tell(setup_->outputs, outputs_ready{place.replica, place.test_net, m.pass,
                                               setup_->first_output, m.outputs});
  tell(neighbours_->push, backward_done{place.replica, m.pass});
  release_gradient(gradient_reuse::when_copied);
}

void layer::on(const gradient_taken&) {
  release_gradient(gradient_reuse::when_summed);
}

// -- clocks that are held back ----------------------------------------------------------------------------

bool layer::has_begun(clock_id clock) const {
  return begun_ && value(*begun_) >= value(clock);
}

bool layer::is_held() const {
  return held_from_ && value(pass_.clock) >= value(*held_from_) && !has_begun(pass_.clock);
}

void layer::on(const hold_passes& m) {
  held_from_ = m.from;
  if (m.from)
    tell(neighbours_->held, passes_held{*m.from, has_begun(*m.from)});
  else
    forward_if_ready();
}

void layer::on(const shut_down&) {
  quit();
}

}  // namespace poseidon
