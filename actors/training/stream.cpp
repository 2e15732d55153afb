#include "actors/training/stream.hpp"

#include <algorithm>
#include <cmath>

namespace poseidon {

stream::stream(actor_context context, stream_setup setup)
    : actor(context), setup_(std::move(setup)) {}

void stream::on(const issue_work& m) {
  if (!entered_) {
    setup_.enter_thread();
    entered_ = true;
  }
  const auto begin = now_ns();
  if (m.waited_since_ns != 0) account_for_standing_still(m, begin);
  m.run();
  idle_since_ns_ = now_ns();
  if (setup_.trace != nullptr)
    setup_.trace->record({m.layer, m.phase, begin, idle_since_ns_, value(m.pass.clock)});
  if (m.copy_to_host) {
    if (setup_.home) setup_.home->sent();
    return tell(setup_.copy_out, poseidon::copy_to_host{m});
  }
  if (m.settle) m.settle();
  std::vector<float> outputs;
  if (m.read_outputs) {
    outputs = m.read_outputs();
    check_finite(m, outputs);
  }
  if (m.reply) tell(m.reply, work_done{m.pass, m.backward, std::move(outputs)});
}

/// Waiting hides as long as there is other work: what counts begins where both the work before and the layer's bottoms
/// were done; on a device that goes on by itself not before the results that it was asked for had come home.
void stream::account_for_standing_still(const issue_work& m, std::int64_t now) {
  auto since = std::max(idle_since_ns_, m.waited_since_ns);
  if (setup_.home) since = setup_.home->idle_since(since).value_or(now);
  if (now <= since) return;
  setup_.overlap->stood_still(now - since);
  if (setup_.trace != nullptr)
    setup_.trace->record({m.layer, "stall", since, now, value(m.pass.clock)});
}

void stream::check_finite(const issue_work& m, const std::vector<float>& outputs) {
  if (reported_ ||
      std::all_of(outputs.begin(), outputs.end(), [](float v) { return std::isfinite(v); }))
    return;
  // Looked for here and now: the next work in the queue would overwrite what tells the culprit.
  reported_ = true;
  tell(setup_.solver,
       nonfinite_found{m.pass, setup_.first_nonfinite().value_or(std::string(m.layer))});
}

void stream::on(const shut_down&) {
  quit();
}

}  // namespace poseidon
