// How a node ends: what has failed, what is still written, and who is told.
#include "actors/node/node.hpp"

#include <utility>

namespace poseidon {

namespace {

/// An actor's exception in its own words; what CAF itself has to say as CAF says it.
std::string text_of(caf::actor_system& system, const caf::error& reason) {
  const auto& words = reason.context();
  return words.match_elements<std::string>() ? words.get_as<std::string>(0) : system.render(reason);
}

}  // namespace

void node::on(const training_failed& m) {
  // Where a loss is no number, it is none on any node.
  constexpr int diverged = 4;
  m.exit_code == diverged ? fail(m.text, m.exit_code) : fail_alone(m.text, m.exit_code);
}

void node::an_actor_died(const caf::down_msg& m) {
  if (core_.phase == run_phase::ended) return;
  if (m.reason == caf::exit_reason::normal) return has_left(m.source.id());
  // A keeper ends where another node has computed other bits than this one, and either may be wrong.
  const bool keeper_ended = core_.run.built() && core_.run.graph().parameters().keeper() &&
                            m.source == caf::actor_cast<caf::actor_addr>(
                                            core_.run.graph().parameters().keeper().untyped());
  const auto text = text_of(system(), m.reason);
  keeper_ended ? fail(text, 1) : fail_alone(text, 1);
  // The snapshot that the node has waited for since a peer was lost will not come.
  if (core_.phase == run_phase::failing &&
      m.source == caf::actor_cast<caf::actor_addr>(core_.run.checkpoints().untyped()))
    close();
}

void node::on(const snapshot_written& m) {
  core_.setup.display->snapshot(value(m.version), m.path, m.error);
  end_.kept(m);
  close();
}

void node::close() {
  if (core_.phase == run_phase::ended) return;
  end_run();
  quit();
}

/// Told to exit by another actor than its own: the actors that it has spawned end with it.
void node::ended() {
  if (core_.phase == run_phase::ended) return;
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
