#include "actors/node/leader_line.hpp"

namespace poseidon {

bool leader_line::ready() const {
  if (leading_)
    leading_->ready(core_.view().seat, core_.view().epoch);
  else
    core_.members.to_leader(ready_here());
  return !leading_ && core_.view().leads();
}

/// Before the first clock it says what need not travel to this node.
frames::member_ready leader_line::ready_here() const {
  frames::member_ready out{core_.run.compiled().replicas, core_.view().epoch};
  const auto& around = core_.setup.around;
  if (around == nullptr || core_.begun) return out;
  out.has_parameters = around->has_parameters;
  out.has_shared = around->has_shared;
  return out;
}

bool leader_line::done(const frames::worker_done& m) const {
  if (leading_)
    leading_->done(core_.view().seat, m);
  else
    core_.members.to_leader(m);
  return !leading_ && core_.view().leads();
}

void leader_line::holds(clock_id clock) const {
  leading_ ? leading_->holds(core_.view().seat, clock)
           : core_.members.to_leader(frames::worker_paused{clock, false});
}

void leader_line::drained(clock_id clock) const {
  leading_ ? leading_->drained(core_.view().seat, clock)
           : core_.members.to_leader(frames::worker_paused{clock, true});
}

void leader_line::leaves(const std::string& why) const {
  leading_ ? leading_->leaves(core_.view().seat, why)
           : core_.members.to_leader(frames::leave_wanted{why});
}

void leader_line::missing(seat_id seat, const std::string& why) const {
  if (leading_) return (void)leading_->gone(seat, why);
  core_.members.send(core_.change.leader().value_or(core_.view().leader()),
                     {frames::suspect{seat, why}, {}, 0});
}

void leader_line::rate(const link_watch::rate& r) const {
  leading_ ? leading_->rate(core_.view().self(), r)
           : core_.members.to_leader(frames::send_rate{r.mbit_s, r.probed});
}

void leader_line::end() {
  if (leading_) leading_->end();
  leading_.reset();
}

}  // namespace poseidon
