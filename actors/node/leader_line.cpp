#include "actors/node/leader_line.hpp"

namespace poseidon {

bool leader_line::ready() const {
  const auto self = core_.view().self;
  if (leading_)
    leading_->ready(self);
  else
    core_.members.to_leader(frames::member_ready{self, core_.run.compiled().replicas});
  return !leading_ && core_.view().leads();
}

bool leader_line::done(version_id version) const {
  const auto self = core_.view().self;
  if (leading_)
    leading_->done(self, version);
  else
    core_.members.to_leader(frames::worker_done{self, version});
  return !leading_ && core_.view().leads();
}

void leader_line::paused(const member_paused& m) const {
  if (leading_)
    leading_->paused(m);
  else
    core_.members.to_leader(frames::worker_paused{m.worker, m.clock, m.drained});
}

void leader_line::rate(const link_watch::rate& r) const {
  if (leading_)
    leading_->rate(core_.view().self, r);
  else
    core_.members.to_leader(frames::send_rate{r.mbit_s, r.probed});
}

void leader_line::end() {
  if (leading_) leading_->end();
  leading_.reset();
}

}  // namespace poseidon
