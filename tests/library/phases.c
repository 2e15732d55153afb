/* tests/library/phases.c - every function of poseidon.h in every phase of a run, with and without what it asks for: it answers, or fails and
 * says why. Nothing is called in an order that the header describes.
 *
 *   test_library_phases HOST:PORT    a free address */
#include "apps/library/poseidon.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { made, declared, joining, training, leaving, over, phases };
static const char* const names[phases] = {"made", "declared", "joining", "training", "leaving", "over"};
static int failed = 0;

static void compare(const char* call, char wanted, long got, int phase) {
  const int fine = wanted == 'e' ? got < 0 && strlen(poseidon_error(NULL)) > 0 : got == wanted - '0';
  if (fine) return;
  failed = 1;
  fprintf(stderr, "%s, %s: answered %ld, expected %c (%s)\n", names[phase], call, got, wanted, poseidon_error(NULL));
}

/* `expected`, by phase: e, an error; a digit, that number; -, it is not called, because it would end the phase. */
#define TRY(call, expected) \
  if ((expected)[phase] != '-') compare(#call, (expected)[phase], (long)(call), phase)

static const int64_t dims[] = {2};
static const float values[2] = {1, 2};
static const float* const no_state[1] = {NULL};
static const poseidon_parameter list[1] = {{"w", dims, 1, values, POSEIDON_MEAN}};
static const poseidon_hyperparameters how = {0};

static void try_all(poseidon_run* p, int phase) {
  const uint32_t first = 0, unknown = 9;
  const poseidon_load load = {0.1, 0, 0};
  char bytes[4] = {0};
  const poseidon_shared shared = {"buffer", "uint8 [4]", bytes, sizeof bytes};
  float room[2];
  float* const to[1] = {room};
  uint8_t answers[1] = {POSEIDON_NOT_YET};
  TRY(poseidon_declare(p, list, 1), "-eeeee");
  TRY(poseidon_declare(p, NULL, 1), "eeeeee");
  TRY(poseidon_declare(p, list, 0), "eeeeee");
  TRY(poseidon_share(p, &shared, 1), "e-eeee");
  TRY(poseidon_share(p, NULL, 1), "eeeeee");
  TRY(poseidon_optimize(p, 9, NULL), "eeeeee");
  TRY(poseidon_optimize(p, POSEIDON_OWN, NULL), "e-eeee");
  TRY(poseidon_first_state(p, 0, 1, no_state, 1), "eeeeee");
  TRY(poseidon_first_state(p, 0, 1, NULL, 1), "eeeeee");
  TRY(poseidon_first_state(p, 9, 1, NULL, 0), "eeeeee");
  TRY(poseidon_step(p, 0, NULL), "eeeeee");
  TRY(poseidon_step(p, 0, &how), "eeeeee"); /* no groups */
  TRY(poseidon_read_state(p, 0), "eeeeee"); /* no optimizer */
  TRY(poseidon_state(p, 0, 0) != NULL, "000000");
  TRY(poseidon_steps(p, 0), "eee0ee");
  TRY(poseidon_steps(p, 9), "eeeeee");
  TRY(poseidon_begin(p, 0), "e-1eee");
  TRY(poseidon_begin(p, -1), "e-1eee");
  TRY(poseidon_begin(p, (double)NAN), "e-1eee");
  TRY(poseidon_worker(p), "000000");
  TRY(poseidon_workers(p), phase < training ? "000000" : "222222");
  TRY(poseidon_order(p, NULL), "eeeeee");
  TRY(poseidon_order(p, &first), "e000ee");
  TRY(poseidon_order(p, &unknown), "eeeeee");
  TRY(poseidon_push(p, 0, 0, NULL, 8), "eeeeee");
  TRY(poseidon_push(p, 0, 0, values, 7), "eeeeee");
  TRY(poseidon_push(p, 9, 0, values, 8), "eeeeee");
  TRY(poseidon_push(p, 0, 7, values, 8), "eeeeee");
  TRY(poseidon_push_nothing(p, 0, 7), "eeeeee");
  TRY(poseidon_push_nothing(p, 9, 0), "eeeeee");
  TRY(poseidon_push_factors(p, 0, 0, NULL, NULL, 1, NULL), "eeeeee");
  TRY(poseidon_push_factors(p, 0, 0, values, values, 1, NULL), "eeeeee"); /* none were offered */
  TRY(poseidon_measured(p, NULL), "eeeeee");
  TRY(poseidon_begin_clock(p, 0, 0), "eee0ee");
  TRY(poseidon_route(p, 0), "eee0ee");
  TRY(poseidon_route(p, 9), "eeeeee");
  TRY(poseidon_wait(p, 0, 0, 0), "eee0ee");
  TRY(poseidon_wait(p, 0, 7, 0), "eeeeee");
  TRY(poseidon_wait(p, 9, 0, 0), "eeeeee");
  TRY(poseidon_look(p, NULL, 0, 0, NULL), "eee0ee");
  TRY(poseidon_look(p, NULL, 1, 0, NULL), "eeeeee");
  TRY(poseidon_look(p, &first, 1, 0, answers), "eee1ee");
  TRY(poseidon_look(p, &unknown, 1, 0, answers), "eeeeee");
  answers[0] = POSEIDON_NOT_YET;
  TRY(poseidon_collect(p, NULL, 0, 0, NULL, NULL, 0), "eee0ee");
  TRY(poseidon_collect(p, NULL, 1, 0, to, answers, 0), "eeeeee");
  TRY(poseidon_collect(p, &unknown, 1, 0, to, answers, 0), "eeeeee");
  TRY(poseidon_collect(p, &first, 1, 0, to, answers, 0), "eee0ee");
  TRY(poseidon_values(p, 0, 0) != NULL, "000100");
  TRY(poseidon_values(p, 9, 0) != NULL, "000000");
  TRY(poseidon_report(p, 0, 1, 1), "eee0ee");
  TRY(poseidon_leave(p, NULL, 0), "----1-");
  TRY(poseidon_leave(p, NULL, 0), "-----0");
  if (phase == training) TRY(poseidon_measured(p, &load), "0000");
  while (poseidon_next_line(p) != NULL) {
  }
}

static void without_handle(void) {
  const int phase = made;
  const uint32_t first = 0;
  TRY(poseidon_declare(NULL, list, 1), "e");
  TRY(poseidon_share(NULL, NULL, 0), "e");
  TRY(poseidon_optimize(NULL, POSEIDON_OWN, NULL), "e");
  TRY(poseidon_first_state(NULL, 0, 1, NULL, 0), "e");
  TRY(poseidon_step(NULL, 0, &how), "e");
  TRY(poseidon_read_state(NULL, 0), "e");
  TRY(poseidon_state(NULL, 0, 0) != NULL, "0");
  TRY(poseidon_steps(NULL, 0), "e");
  TRY(poseidon_begin(NULL, 0), "e");
  TRY(poseidon_worker(NULL), "0");
  TRY(poseidon_workers(NULL), "0");
  TRY(poseidon_order(NULL, &first), "e");
  TRY(poseidon_push(NULL, 0, 0, values, 8), "e");
  TRY(poseidon_push_nothing(NULL, 0, 0), "e");
  TRY(poseidon_push_factors(NULL, 0, 0, values, values, 1, NULL), "e");
  TRY(poseidon_measured(NULL, NULL), "e");
  TRY(poseidon_begin_clock(NULL, 0, 0), "e");
  TRY(poseidon_route(NULL, 0), "e");
  TRY(poseidon_wait(NULL, 0, 0, 0), "e");
  TRY(poseidon_look(NULL, NULL, 0, 0, NULL), "e");
  TRY(poseidon_collect(NULL, NULL, 0, 0, NULL, NULL, 0), "e");
  TRY(poseidon_values(NULL, 0, 0) != NULL, "0");
  TRY(poseidon_report(NULL, 0, 1, 1), "e");
  TRY(poseidon_next_line(NULL) != NULL, "0");
  TRY(poseidon_leave(NULL, NULL, 0), "e");
  poseidon_free(NULL);
}

/* A name that no message could show is refused; a text of several lines becomes one. */
static void names_are_shown(void) {
  static const char* const unfit[] = {"a\nb", "a\x1b[31mb", "a\x7f", "\xc2\x85", "\xff", "\xed\xa0\x80"};
  const int phase = made;
  for (unsigned i = 0; i < sizeof unfit / sizeof *unfit; ++i) {
    const poseidon_parameter bad[1] = {{unfit[i], dims, 1, values, POSEIDON_MEAN}};
    poseidon_run* p = poseidon_join("");
    TRY(poseidon_declare(p, bad, 1), "e");
    TRY(strstr(poseidon_error(p), "without control characters") != NULL, "1");
    TRY(strpbrk(poseidon_error(p), "\n\x1b\x7f") != NULL, "0");
    poseidon_free(p);
  }
  const poseidon_parameter fine[1] = {{"Schicht.gewicht\xc3\xa4", dims, 1, values, POSEIDON_MEAN}};
  poseidon_run* p = poseidon_join("");
  TRY(poseidon_declare(p, fine, 1), "0");
  TRY(poseidon_begin(p, 60), "0");
  while (poseidon_leave(p, "one\ntwo", 0.1) == POSEIDON_NOT_YET) {
  }
  TRY(strcmp(poseidon_error(p), "one two"), "0");
  poseidon_free(p);
}

int main(int count, char** words) {
  char options[256];
  if (count != 2) return 2;
  without_handle();
  names_are_shown();
  snprintf(options, sizeof options, "listen=%s\nnodes=2", words[1]);
  poseidon_run* p = poseidon_join(options);
  snprintf(options, sizeof options, "join=%s", words[1]);
  poseidon_run* other = poseidon_join(options);
  if (p == NULL || other == NULL || poseidon_declare(other, list, 1) != 0) return 1;
  try_all(p, made);
  if (poseidon_declare(p, list, 1) != 0) return 1;
  try_all(p, declared);
  if (poseidon_begin(p, 0) != POSEIDON_NOT_YET) return 1;
  try_all(p, joining);
  for (int one = 1, two = 1; one != 0 || two != 0;) {
    if (one != 0) one = poseidon_begin(p, 0.05);
    if (two != 0) two = poseidon_begin(other, 0.05);
    if (one < 0 || two < 0) {
      fprintf(stderr, "begin: %s\n", poseidon_error(NULL));
      return 1;
    }
  }
  try_all(p, training);
  if (poseidon_leave(p, NULL, 0) != POSEIDON_NOT_YET) return 1; /* the other one trains */
  try_all(p, leaving);
  for (int one = 1, two = 1; one != 0 || two != 0;) {
    if (two != 0) two = poseidon_leave(other, NULL, 0.05);
    if (one != 0) one = poseidon_leave(p, NULL, 0.05);
    if (one < 0 || two < 0) {
      fprintf(stderr, "leave: %s\n", poseidon_error(NULL));
      return 1;
    }
  }
  try_all(p, over);
  poseidon_free(p);
  poseidon_free(other);
  p = poseidon_join(""); /* left before anything was declared */
  if (poseidon_leave(p, NULL, 0) != 0) return 1;
  const int phase = over;
  TRY(poseidon_declare(p, list, 1), "eeeeee");
  TRY(poseidon_begin(p, 0), "eeeeee");
  TRY(poseidon_look(p, NULL, 0, 0, NULL), "eeeeee");
  poseidon_free(p);
  return failed;
}
