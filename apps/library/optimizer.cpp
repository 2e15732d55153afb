// apps/library/optimizer.cpp - the functions of poseidon.h with which the shards make an optimizer's steps.
#include "apps/library/poseidon.h"
#include "apps/library/run_handle.hpp"

#include <string>
#include <vector>

using poseidon::library::called;
using poseidon::library::limit_of;
using poseidon::library::session;
using poseidon::library::session_error;

extern "C" {

int poseidon_optimize(poseidon_run* p, int optimizer, const uint32_t* groups) {
  return called(p, [&](session& s) {
    if (optimizer < POSEIDON_OWN || optimizer > POSEIDON_ADAMW)
      throw session_error("optimizer is " + std::to_string(optimizer) +
                          ", expected POSEIDON_OWN, POSEIDON_SGD, POSEIDON_ADAM or POSEIDON_ADAMW");
    std::vector<std::uint32_t> of(s.parameters(), 0);
    if (groups != nullptr) of.assign(groups, groups + s.parameters());
    s.optimize(static_cast<poseidon::optimizer_rule>(optimizer), std::move(of));
    return 0;
  });
}

int poseidon_first_state(poseidon_run* p, uint32_t parameter, uint64_t steps,
                         const float* const* state, size_t count) {
  return called(p, [&](session& s) {
    if (count > 2 || (state == nullptr && count > 0))
      throw session_error("the state of parameter " + std::to_string(parameter) + " has " +
                          std::to_string(count) + " arrays, expected 2 at most");
    s.first_state(parameter, steps, {state, state + count});
    return 0;
  });
}

int poseidon_step(poseidon_run* p, uint32_t group, const poseidon_hyperparameters* h) {
  return called(p, [&](session& s) {
    if (h == nullptr) throw session_error("poseidon_step was given no hyperparameters");
    s.step(group, {.rate = h->rate,
                   .weight_decay = h->weight_decay,
                   .momentum = h->momentum,
                   .dampening = h->dampening,
                   .beta2 = h->beta2,
                   .epsilon = h->eps,
                   .nesterov = h->nesterov != 0,
                   .lerp = h->lerp != 0,
                   .rest = h->rest});
    return 0;
  });
}

int poseidon_step_from(poseidon_run* p, uint32_t parameter, const float* values) {
  return called(p, [&](session& s) {
    s.step_from(parameter, values);
    return 0;
  });
}

int poseidon_read_state(poseidon_run* p, double timeout_s) {
  return called(
      p, [&](session& s) { return s.read_state(limit_of(timeout_s)) ? 0 : POSEIDON_NOT_YET; });
}

const float* poseidon_state(poseidon_run* p, uint32_t parameter, uint32_t array) {
  return p == nullptr ? nullptr : p->run.state(parameter, array);
}

int64_t poseidon_steps(poseidon_run* p, uint32_t parameter) {
  int64_t made = -1;
  (void)called(p, [&](session& s) {
    made = static_cast<int64_t>(s.steps(parameter));
    return 0;
  });
  return made;
}

}  // extern "C"
