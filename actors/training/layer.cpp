#include "actors/training/layer.hpp"

#include "actors/core/logic_bug.hpp"
#include "actors/core/trace.hpp"

#include <utility>

namespace poseidon {

layer::layer(actor_context context, layer_setup setup) : actor(context), setup_(std::move(setup)) {}

void layer::on(const connect_layer& m) {
  neighbours_ = m;
}

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

void layer::enter(const pass_id& p) {
  if (forward_issued_ || bottoms_here_ > 0)
    throw logic_bug("a pass begins inside another", value(p.clock), value(pass_.clock));
  pass_ = p;
}

void layer::issue(issue_work work) {
  if (setup_.inspect && !(work.copy_to_host && work.backward))  // there it belongs to settle
    work.run = [run = std::move(work.run), look = setup_.inspect, p = work.pass,
                backward = work.backward] {
      run();
      look(p, backward);
    };
  tell(setup_.stream, std::move(work));
}

void layer::on(const parameters_fresh& m) {
  fresh_ = m.version;
  any_version_ = true;
  if (setup_.copy_in) {
    issue_work work;
    work.run = [copy = setup_.compiled, l = setup_.in_net] { copy->bring_parameters(l); };
    work.layer = setup_.name;
    work.phase = "bring in";
    tell(setup_.copy_in, std::move(work));
  }
  forward_if_ready();
}

pass layer::compute_pass() const {
  const auto after = setup_.passes_after ? setup_.passes_after(pass_.index) : 0;
  return {value(pass_.clock), pass_.first_sample, setup_.seed, after, now_ns(), pass_.index};
}

void layer::forward_if_ready() {
  const auto bottoms = setup_.is_source ? 1 : neighbours_.producers.size();
  if (forward_issued_ || bottoms_here_ < bottoms || bottoms == 0) return;
  if (setup_.has_parameters && !any_version_) return;
  if (setup_.learns && value(fresh_) + setup_.staleness < value(pass_.clock)) {
    if (waits_since_ns_ == 0) waits_since_ns_ = now_ns();
    return;
  }
  forward_issued_ = true;

  issue_work work;
  work.waited_since_ns = std::exchange(waits_since_ns_, 0);
  if (setup_.is_source) {
    // The batch before is let go by the stream, not here: its last use may still be in the queue.
    work.run = [k = setup_.compute, p = compute_pass(), now = std::move(batch_), fed = setup_.fed,
                copy = setup_.is_asynchronous ? setup_.compiled : nullptr]() mutable {
      k->feed(*now);
      *fed = std::move(now);
      k->forward(p);
      if (copy) copy->keep(*fed);
    };
  } else {
    work.run = [k = setup_.compute, p = compute_pass(), id = pass_, pin = setup_.pin] {
      if (pin) pin(id);
      k->forward(p);
    };
  }
  if (setup_.read_outputs) {
    setup_.is_asynchronous ? bring_outputs(work) : void(work.read_outputs = setup_.read_outputs);
    work.reply = handle<layer>(this);
  }
  work.pass = pass_;
  work.layer = setup_.name;
  work.phase = setup_.training ? "forward" : "test";
  issue(std::move(work));
  for (const auto& consumer : neighbours_.consumers) tell(consumer, bottom_ready{pass_});
  backward_if_ready();
}

/// The copy is behind the kernel in the device's queue before the next pass can overwrite what it reads.
void layer::bring_outputs(issue_work& work) const {
  const auto fetched = std::make_shared<std::shared_ptr<fetched_values>>();
  work.run = [run = std::move(work.run), copy = setup_.compiled, blobs = setup_.output_blobs,
              fetched] {
    run();
    *fetched = copy->fetch(blobs);
  };
  work.copy_to_host = [fetched](completion over) { (*fetched)->when_here(std::move(over)); };
  work.read_outputs = [fetched, make = setup_.make_outputs] { return make((*fetched)->values()); };
}

void layer::bring_gradient(issue_work& work) const {
  work.copy_to_host = [copy = setup_.compiled, l = setup_.in_net](completion over) {
    copy->bring_gradients(l, std::move(over));
  };
  work.home_phase = setup_.home_phase;
  work.settle = [contribute = setup_.contribute, look = setup_.inspect, p = work.pass] {
    if (look) look(p, true);
    contribute(p);
  };
}

void layer::on(const top_diff_ready& m) {
  if (m.pass != pass_)
    throw logic_bug("a diff of another pass", value(m.pass.clock), value(pass_.clock));
  ++top_diffs_here_;
  backward_if_ready();
}

bool layer::gradient_memory_free() const {
  if (setup_.is_asynchronous && passes_home_ < passes_pushed_) return false;
  return !setup_.waits_for_taken || passes_taken_ == passes_pushed_;
}

void layer::backward_if_ready() {
  if (!forward_issued_ || top_diffs_here_ < neighbours_.consumers.size()) return;
  const bool writes = setup_.training && setup_.contribute != nullptr;
  if (writes && !gradient_memory_free()) return;
  const bool pushes = writes && (pass_.index + 1) % setup_.passes_added == 0;

  if (setup_.training && (setup_.runs_backward || pushes)) {
    issue_work work;
    work.pass = pass_;
    work.backward = true;
    work.layer = setup_.name;
    work.phase = "backward";
    // A layer that no loss reaches has nothing to compute; its gradient is zero, and stays so.
    auto* computes = setup_.runs_backward ? setup_.compute : nullptr;
    work.run = [computes, p = compute_pass(), id = pass_,
                contribute = pushes && !setup_.is_asynchronous ? setup_.contribute : nullptr] {
      if (computes != nullptr) computes->backward(p);
      if (contribute) contribute(id);
    };
    if (pushes && setup_.is_asynchronous) bring_gradient(work);
    if (pushes) {
      work.reply = handle<layer>(this);
      ++passes_pushed_;
    }
    issue(std::move(work));
  }
  // This pass is over here before the neighbours hear of it: they may start the next one.
  forward_issued_ = false;
  bottoms_here_ = top_diffs_here_ = 0;
  for (const auto& producer : neighbours_.producers) tell(producer, top_diff_ready{pass_});
  if (setup_.is_source) tell(setup_.issued, pass_issued{setup_.in_replica, setup_.test_net, pass_});
}

void layer::on(const work_done& m) {
  if (!m.backward)
    return tell(setup_.outputs, outputs_ready{setup_.in_replica, setup_.test_net, m.pass,
                                              setup_.first_output, m.outputs});
  tell(neighbours_.push, backward_done{setup_.in_replica, m.pass});
  ++passes_home_;
  backward_if_ready();
}

void layer::on(const gradient_taken&) {
  ++passes_taken_;
  backward_if_ready();
}

void layer::on(const shut_down&) {
  neighbours_ = {};
  quit();
}

}  // namespace poseidon
