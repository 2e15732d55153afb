#include "actors/training/copy_out.hpp"

#include <algorithm>
#include <cmath>

namespace poseidon {

copy_out::copy_out(actor_context context, copy_out_setup setup)
    : actor(context), setup_(std::move(setup)) {}

void copy_out::on(const copy_to_host& m) {
  if (!entered_) {
    setup_.enter_thread();
    entered_ = true;
  }
  const auto ticket = next_ticket_++;
  under_way_.emplace(ticket, on_its_way{m.work, now_ns()});
  m.work.copy_to_host(
      [tell_me = sender_to_self<copied_to_host>(), ticket](std::exception_ptr failed) {
        tell_me(copied_to_host{ticket, std::move(failed)});
      });
}

void copy_out::on(const copied_to_host& m) {
  if (m.failed) std::rethrow_exception(m.failed);
  const auto arrived = under_way_.extract(m.ticket);
  const issue_work& work = arrived.mapped().work;
  if (setup_.home) setup_.home->here(now_ns());
  if (work.settle) work.settle();
  if (setup_.trace != nullptr) {
    // Copies wait for each other: each is shown from where the one before has ended.
    const auto begin = std::max(arrived.mapped().since_ns, last_arrival_ns_);
    last_arrival_ns_ = now_ns();
    setup_.trace->record(
        {work.layer, work.home_phase, begin, last_arrival_ns_, value(work.pass.clock)});
  }
  std::vector<float> outputs;
  if (work.read_outputs) {
    outputs = work.read_outputs();
    check_finite(work, outputs);
  }
  if (work.reply) tell(work.reply, work_done{work.pass, work.backward, std::move(outputs)});
}

void copy_out::check_finite(const issue_work& work, const std::vector<float>& outputs) {
  if (reported_ ||
      std::all_of(outputs.begin(), outputs.end(), [](float v) { return std::isfinite(v); }))
    return;
  // The device has gone on: where the culprit's values have been overwritten, the layer of the output is named.
  reported_ = true;
  tell(setup_.solver,
       nonfinite_found{work.pass, setup_.first_nonfinite().value_or(std::string(work.layer))});
}

void copy_out::on(const shut_down&) {
  quit();
}

}  // namespace poseidon
