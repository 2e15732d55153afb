// actors/node/trainer.hpp
//
// The actor that begins clocks, as the rest of a node sees it: a solver, or where a program computes the gradients the caller.
// It hears only what it takes: what is sent to an empty port is dropped.
#pragma once
#include "actors/client/caller.hpp"
#include "actors/training/solver.hpp"

namespace poseidon {

struct trainer {
  port<begin_training> begin;
  port<control_passed> control;
  port<finish_after> finish;
  port<stop_soon> stop;
  port<snapshot_soon> snapshot;
  port<hold_clocks> hold;
  port<pause_at> pause;
  port<resume_training> resume;
  port<shut_down> end;
  port<give_up_clocks> give_up;
  port<go_back> back;
};

[[nodiscard]] inline trainer trainer_of(const handle<solver>& s) {
  return {s, s, s, s, s, s, s, s, s, s, s};
}
[[nodiscard]] inline trainer trainer_of(const handle<caller>& c) {
  trainer out;
  out.begin = c;
  out.control = c;
  out.hold = c;
  out.pause = c;
  out.resume = c;
  out.end = c;
  out.give_up = c;
  out.back = c;
  return out;
}

}  // namespace poseidon
