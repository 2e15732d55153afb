#include "actors/training/stream.hpp"

#include <algorithm>
#include <utility>

namespace poseidon {

stream::stream(actor_context context, stream_setup setup) : actor(context) {
  results_ = result_reader(setup.first_nonfinite);
  setup_ = std::move(setup);
}

void stream::on(const issue_work& m) {
  if (!entered_) {
    setup_->enter_thread();
    entered_ = true;
  }
  const auto begin = now_ns();
  if (m.waited_since_ns != 0) account_for_stall(m, begin);
  m.run();
  idle_since_ns_ = now_ns();
  const auto& label = m.label;
  if (setup_->trace != nullptr)
    setup_->trace->record(
        {label.layer, label.phase, begin, idle_since_ns_, value(label.pass.clock)});
  if (m.to_host.begin) {
    if (setup_->copies) setup_->copies->begun();
    return tell(setup_->copy_out, poseidon::copy_to_host{m});
  }
  auto finished = results_->finished(m);
  if (finished.nonfinite) tell(setup_->solver, std::move(*finished.nonfinite));
  if (m.results.reply) tell<work_done>(m.results.reply, std::move(finished.done));
}

/// A wait for parameters is hidden while the replica has other work. So a stall begins when both the work before and the
/// layer's bottoms are done, and on an asynchronous device not before its copies to the host have finished.
void stream::account_for_stall(const issue_work& m, std::int64_t now) {
  auto since = std::max(idle_since_ns_, m.waited_since_ns);
  if (setup_->copies) since = setup_->copies->idle_since(since).value_or(now);
  if (now <= since) return;
  setup_->overlap->stood_still(now - since);
  if (setup_->trace != nullptr)
    setup_->trace->record(
        {m.label.layer, span_phase::stall, since, now, value(m.label.pass.clock)});
}

void stream::on(const shut_down&) {
  quit();
}

}  // namespace poseidon
