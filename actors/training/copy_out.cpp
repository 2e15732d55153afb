#include "actors/training/copy_out.hpp"

#include <algorithm>
#include <utility>

namespace poseidon {

copy_out::copy_out(actor_context context, copy_out_setup setup) : actor(context) {
  results_ = result_reader(setup.first_nonfinite);
  setup_ = std::move(setup);
}

void copy_out::on(const copy_to_host& m) {
  if (!entered_) {
    setup_->enter_thread();
    entered_ = true;
  }
  const auto ticket = next_ticket_++;
  in_flight_->emplace(ticket, copy_in_flight{m.work, now_ns()});
  m.work.to_host.begin(
      [tell_me = sender_to_self<copied_to_host>(), ticket](std::exception_ptr failed) {
        tell_me(copied_to_host{ticket, std::move(failed)});
      });
}

void copy_out::on(const copied_to_host& m) {
  if (m.failed) std::rethrow_exception(m.failed);
  const auto arrived = in_flight_->extract(m.ticket);
  const issue_work& work = arrived.mapped().work;
  if (setup_->copies) setup_->copies->finished(now_ns());
  if (work.to_host.settle) work.to_host.settle();
  if (setup_->trace != nullptr) {
    // Copies wait for each other: the trace shows each from the end of the one before.
    const auto begin = std::max(arrived.mapped().since_ns, last_arrival_ns_);
    last_arrival_ns_ = now_ns();
    setup_->trace->record({work.label.layer, work.to_host.phase, begin, last_arrival_ns_,
                           value(work.label.pass.clock)});
  }
  auto finished = results_->finished(work);
  if (finished.nonfinite) tell(setup_->solver, std::move(*finished.nonfinite));
  if (work.results.reply) tell<work_done>(work.results.reply, std::move(finished.done));
}

void copy_out::on(const shut_down&) {
  quit();
}

}  // namespace poseidon
