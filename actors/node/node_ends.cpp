// How a node ends: what has failed, what is still written, and who is told.
#include "actors/core/actor_failure.hpp"
#include "actors/node/node.hpp"

#include <utility>

namespace poseidon {

void node::on(const training_failed& m) {
  // Where a loss is no number, it is none on any node.
  constexpr int diverged = 4;
  m.exit_code == diverged ? fail(m.text, m.exit_code) : fail_alone(m.text, m.exit_code);
}

void node::an_actor_died(const caf::down_msg& m) {
  if (core_.change.at() == node_stage::ended) return;
  if (m.reason == caf::exit_reason::normal) return has_left(m.source.id());
  const auto failure = failure_of(system(), m.reason);
  failure.of_all ? fail(failure.text, 1) : fail_alone(failure.text, 1);
  // The snapshot that the node has waited for since a peer was lost will not come.
  if (core_.change.at() == node_stage::failing &&
      m.source == caf::actor_cast<caf::actor_addr>(core_.run.checkpoints().untyped()))
    close();
}

void node::on(const snapshot_written& m) {
  core_.setup.display->snapshot(value(m.version), m.path, m.error);
  end_.kept(m);
  close();
}

void node::close() {
  if (core_.change.at() == node_stage::ended) return;
  end_run();
  quit();
}

/// Told to exit by another actor than its own: the actors that it has spawned end with it.
void node::ended() {
  if (core_.change.at() == node_stage::ended) return;
  end_.was_stopped();
  end_run();
}

void node::end_run() {
  end_.begin();
  leader_.end();
  search_.end();
  assembly_.end();
  values_.end();
  end_.complete();
}

}  // namespace poseidon
