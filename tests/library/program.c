/* tests/library/program.c - poseidon.h from C99: two workers, each a process, exchange gradients; and what the library refuses. */
#include "apps/library/poseidon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLOCKS 10
#define VALUES 5

static void require(int holds, const char* what, poseidon_run* run) {
  if (holds) return;
  fprintf(stderr, "%s does not hold; the library says: \"%s\"\n", what, poseidon_error(run));
  exit(1);
}
#define REQUIRE(run, condition) require(condition, #condition, run)

static int gate[2]; /* a pipe from worker 0 to worker 1 */

/* One worker; returns its exit code. */
static int train(const char* options) {
  const int64_t dims[] = {VALUES};
  const float first[VALUES] = {1, 2, 3, 4, 5};
  float gradient[2][VALUES];
  poseidon_parameter list[2] = {{"a", dims, 1, first}, {"b", NULL, 0, first}};
  poseidon_run* p = poseidon_join(options);
  REQUIRE(p, p != NULL);
  REQUIRE(p, poseidon_wait(p, 0, 0, 0) < 0 && strstr(poseidon_error(p), "has not begun") != NULL);
  REQUIRE(p, poseidon_declare(p, list, 2) == 0);
  REQUIRE(p, poseidon_declare(p, list, 2) < 0 && strstr(poseidon_error(p), "declared already") != NULL);
  int answer;
  while ((answer = poseidon_begin(p, 0.1)) == POSEIDON_NOT_YET) {
  }
  REQUIRE(p, answer == 0);
  const unsigned worker = poseidon_worker(p), workers = poseidon_workers(p);
  REQUIRE(p, poseidon_wait(p, 0, 0, 0) == POSEIDON_HERE);
  REQUIRE(p, memcmp(poseidon_values(p, 0, 0), first, sizeof first) == 0);
  REQUIRE(p, poseidon_push(p, 7, 0, first, 4) < 0 && strstr(poseidon_error(p), "declared are 2") != NULL);
  REQUIRE(p, poseidon_push(p, 0, 0, first, 4) < 0 && strstr(poseidon_error(p), "expected 20") != NULL);
  REQUIRE(p, poseidon_push(p, 0, 3, first, sizeof first) < 0 && strstr(poseidon_error(p), "expected clock 0") != NULL);
  const uint32_t turned[2] = {1, 0}, wrong[2] = {2, 0};
  REQUIRE(p, poseidon_order(p, turned) == 0);
  REQUIRE(p, poseidon_order(p, wrong) < 0);
  uint8_t here[2] = {9, 9};
  REQUIRE(p, poseidon_look(p, turned, 2, 0, here) == 2 && here[0] == POSEIDON_HERE && here[1] == POSEIDON_HERE);
  REQUIRE(p, poseidon_look(p, turned, 2, 1, here) == 0);
  REQUIRE(p, poseidon_look(p, turned, 0, 0, NULL) == 0);
  REQUIRE(p, poseidon_look(p, wrong, 2, 0, here) < 0 && strstr(poseidon_error(p), "declared are 2") != NULL);
  REQUIRE(p, poseidon_look(p, turned, 2, 0, NULL) < 0 && strstr(poseidon_error(p), "no room for answers") != NULL);
  /* Small whole numbers and their halves are the same in bfloat16. */
  REQUIRE(p, poseidon_wire(p, 5) < 0 && strstr(poseidon_error(p), "POSEIDON_BFLOAT16") != NULL);
  REQUIRE(p, poseidon_wire(p, POSEIDON_BFLOAT16) == POSEIDON_FLOAT32);
  for (uint64_t clock = 0; clock < CLOCKS; ++clock) {
    if (clock == CLOCKS / 2) REQUIRE(p, poseidon_wire(p, POSEIDON_FLOAT32) == (workers > 1 ? POSEIDON_BFLOAT16 : POSEIDON_FLOAT32));
    float sum = 0;
    for (unsigned w = 0; w < workers; ++w) sum += (float)(clock + w + 1);
    for (int i = 0; i < VALUES; ++i) gradient[clock % 2][i] = (float)(clock + worker + 1);
    REQUIRE(p, poseidon_push(p, 0, clock, gradient[clock % 2], sizeof gradient[0]) == 0);
    /* The second parameter: nobody has a gradient in even clocks, worker 0 alone in odd ones. */
    if (clock % 2 == 1 && worker == 0)
      REQUIRE(p, poseidon_push(p, 1, clock, gradient[clock % 2], 4) == 0);
    else
      REQUIRE(p, poseidon_push_nothing(p, 1, clock) == 0);
    while ((answer = poseidon_wait(p, 0, clock + 1, 0.1)) == POSEIDON_NOT_YET) {
    }
    REQUIRE(p, answer == POSEIDON_HERE);
    REQUIRE(p, poseidon_values(p, 0, clock + 1)[VALUES - 1] == sum * (1.0f / (float)workers));
    while ((answer = poseidon_wait(p, 1, clock + 1, 0.1)) == POSEIDON_NOT_YET) {
    }
    REQUIRE(p, answer == (clock % 2 == 1 ? POSEIDON_HERE : POSEIDON_NO_GRADIENT));
    REQUIRE(p, poseidon_look(p, turned, 2, clock + 1, here) == 2 && here[0] == answer && here[1] == POSEIDON_HERE);
    if (clock % 2 == 1) REQUIRE(p, poseidon_values(p, 1, clock + 1)[0] == (float)(clock + 1) * (1.0f / (float)workers));
    REQUIRE(p, poseidon_report(p, clock, 0.5, 8) == 0);
  }
  REQUIRE(p, poseidon_wait(p, 0, CLOCKS + 1, 0) < 0 && strstr(poseidon_error(p), "has not been pushed") != NULL);
  while ((answer = poseidon_leave(p, NULL, 0.1)) == POSEIDON_NOT_YET) {
  }
  REQUIRE(p, answer == 0);
  REQUIRE(p, poseidon_push(p, 0, CLOCKS, first, sizeof first) < 0);
  poseidon_free(p);
  return 0;
}

/* One of two workers, worker 0 with routes=sfb: a matrix whose gradient goes as a whole until routes have changed, then as factors, in
 * as many clocks as that takes. */
static int train_by_factors(const char* options) {
  const int64_t dims[] = {2, 3};
  const float first[6] = {0}, v[3] = {1, 2, 3};
  const poseidon_parameter list[1] = {{"matrix", dims, 2, first}};
  const poseidon_load load = {0.5, 0.25, 1};
  poseidon_run* p = poseidon_join(options);
  int answer, by_factors = 0;
  float whole[2][6], own[6]; /* the last mean is made in the program's memory, those before it lie in the library's */
  REQUIRE(p, p != NULL && poseidon_declare(p, list, 1) == 0);
  while ((answer = poseidon_begin(p, 0.1)) == POSEIDON_NOT_YET) {
  }
  REQUIRE(p, answer == 0);
  REQUIRE(p, poseidon_push_factors(p, 0, 0, first, v, 1, NULL) < 0 && strstr(poseidon_error(p), "give it as a whole") != NULL);
  const unsigned worker = poseidon_worker(p);
  uint64_t clock = 0;
  for (; by_factors < 3; ++clock) {
    while ((answer = poseidon_begin_clock(p, clock, 0.1)) == POSEIDON_NOT_YET) {
    }
    REQUIRE(p, answer == 0);
    const float u[2] = {(float)(worker + 1), (float)(clock % 8)};
    if (poseidon_route(p, 0) == 1) {
      ++by_factors;
      REQUIRE(p, poseidon_push(p, 0, clock, first, sizeof first) < 0 && strstr(poseidon_error(p), "give its factors") != NULL);
      REQUIRE(p, poseidon_push_factors(p, 0, clock, u, v, 2, NULL) < 0 && strstr(poseidon_error(p), "at most 1 were offered") != NULL);
      if (by_factors == 2) /* nobody has a gradient */
        REQUIRE(p, poseidon_push_nothing(p, 0, clock) == 0);
      else
        REQUIRE(p, poseidon_push_factors(p, 0, clock, u, v, 1, by_factors == 3 ? own : NULL) == 0);
    } else {
      for (int i = 0; i < 6; ++i) whole[clock % 2][i] = u[i / 3] * v[i % 3];
      REQUIRE(p, poseidon_push(p, 0, clock, whole[clock % 2], sizeof whole[0]) == 0);
    }
    if (clock == 1) {
      REQUIRE(p, poseidon_measured(p, &load) == 0);
      REQUIRE(p, poseidon_measured(p, &load) < 0 && strstr(poseidon_error(p), "offered factors already") != NULL);
    }
    const uint32_t parameters[1] = {0};
    float copy[6];
    float* const to[1] = {by_factors == 1 ? copy : NULL};
    uint8_t answers[1] = {POSEIDON_NOT_YET};
    while ((answer = poseidon_collect(p, parameters, 1, clock + 1, to, answers, 0.1)) > 0) {
    }
    REQUIRE(p, answer == 0 && answers[0] == (by_factors == 2 ? POSEIDON_NO_GRADIENT : POSEIDON_HERE));
    REQUIRE(p, poseidon_wait(p, 0, clock + 1, 0) == answers[0]);
    const float* mean = by_factors == 1 ? copy : by_factors == 3 ? own : poseidon_values(p, 0, clock + 1);
    for (int i = 0; i < 6 && by_factors != 2; ++i) REQUIRE(p, mean[i] == (i < 3 ? 1.5f : (float)(clock % 8)) * v[i % 3]);
  }
  while ((answer = poseidon_leave(p, NULL, 0.1)) == POSEIDON_NOT_YET) {
  }
  REQUIRE(p, answer == 0);
  poseidon_free(p);
  return 0;
}

/* One of two workers, whose shards step by SGD with momentum: the state is read in the middle, and joins a second run. */
static int train_by_optimizer(const char* options) {
  const int64_t dims[] = {3};
  const float first[3] = {1, 2, 3};
  const float gradient[2][3] = {{4, 4, 4}, {0, 0, 0}};
  const poseidon_parameter list[1] = {{"vector", dims, 1, first}};
  poseidon_hyperparameters how = {0};
  float w[3] = {1, 2, 3}, momentum[3] = {0, 0, 0};
  for (int run = 0; run < 2; ++run) {
    const float* state[1] = {momentum};
    int answer;
    poseidon_parameter mine = list[0];
    mine.values = w;
    poseidon_run* p = poseidon_join(options);
    REQUIRE(p, p != NULL && poseidon_optimize(p, POSEIDON_SGD, NULL) < 0 && strstr(poseidon_error(p), "after poseidon_declare") != NULL);
    REQUIRE(p, poseidon_declare(p, &mine, 1) == 0);
    REQUIRE(p, poseidon_first_state(p, 0, 2, state, 1) < 0 && strstr(poseidon_error(p), "after poseidon_optimize") != NULL);
    REQUIRE(p, poseidon_optimize(p, 9, NULL) < 0 && strstr(poseidon_error(p), "optimizer is 9") != NULL);
    REQUIRE(p, poseidon_optimize(p, POSEIDON_SGD, NULL) == 0);
    if (run == 1) REQUIRE(p, poseidon_first_state(p, 0, 2, state, 1) == 0);
    while ((answer = poseidon_begin(p, 0.1)) == POSEIDON_NOT_YET) {
    }
    REQUIRE(p, answer == 0);
    const unsigned worker = poseidon_worker(p);
    REQUIRE(p, poseidon_push(p, 0, 0, gradient[worker], sizeof gradient[0]) < 0 && strstr(poseidon_error(p), "before poseidon_step") != NULL);
    REQUIRE(p, poseidon_step(p, 1, &how) < 0 && strstr(poseidon_error(p), "group 1 has no parameters") != NULL);
    how.momentum = 0.5;
    for (uint64_t clock = 0; clock < 2; ++clock) {
      how.rate = clock == 0 ? 0.25 : 0.5;
      char pushed = 0;
      REQUIRE(p, poseidon_step(p, 0, &how) == 0);
      REQUIRE(p, worker == 0 || read(gate[0], &pushed, 1) == 1);
      REQUIRE(p, poseidon_push(p, 0, clock, gradient[worker], sizeof gradient[0]) == 0);
      if (worker == 0) { /* the other one has not pushed yet */
        REQUIRE(p, poseidon_read_state(p, 0) < 0 && strstr(poseidon_error(p), "state is read before") != NULL);
        REQUIRE(p, write(gate[1], &pushed, 1) == 1);
      }
      while ((answer = poseidon_wait(p, 0, clock + 1, 0.1)) == POSEIDON_NOT_YET) {
      }
      REQUIRE(p, answer == POSEIDON_HERE);
      for (int i = 0; i < 3; ++i) { /* the mean is 2 */
        momentum[i] = (run == 0 && clock == 0) ? 2 : momentum[i] * 0.5f + 2;
        w[i] -= (float)how.rate * momentum[i];
        REQUIRE(p, poseidon_values(p, 0, clock + 1)[i] == w[i]);
      }
      while ((answer = poseidon_read_state(p, 0.1)) == POSEIDON_NOT_YET) {
      }
      REQUIRE(p, answer == 0 && poseidon_steps(p, 0) == (int64_t)(2 * run + clock + 1));
      for (int i = 0; i < 3; ++i) REQUIRE(p, poseidon_state(p, 0, 0)[i] == momentum[i]);
      REQUIRE(p, poseidon_state(p, 0, 1) == NULL && poseidon_state(p, 1, 0) == NULL && poseidon_steps(p, 1) == -1);
    }
    while ((answer = poseidon_leave(p, NULL, 0.1)) == POSEIDON_NOT_YET) {
    }
    REQUIRE(p, answer == 0);
    poseidon_free(p);
  }
  return 0;
}

/* One of two workers, which make their own steps, and only compare what they say of them: in clock 2 they say different things. */
static int train_compared(const char* options) {
  const int64_t dims[] = {3};
  const float first[3] = {1, 2, 3}, gradient[3] = {4, 4, 4};
  const poseidon_parameter list[1] = {{"vector", dims, 1, first}};
  poseidon_hyperparameters how = {0};
  int answer;
  poseidon_run* p = poseidon_join(options);
  REQUIRE(p, p != NULL && poseidon_declare(p, list, 1) == 0);
  REQUIRE(p, poseidon_optimize(p, POSEIDON_OWN, NULL) == 0);
  while ((answer = poseidon_begin(p, 0.1)) == POSEIDON_NOT_YET) {
  }
  REQUIRE(p, answer == 0);
  REQUIRE(p, poseidon_push(p, 0, 0, gradient, sizeof gradient) < 0 && strstr(poseidon_error(p), "before poseidon_step") != NULL);
  for (uint64_t clock = 0; clock < 3; ++clock) {
    how.rest = clock == 2 ? poseidon_worker(p) : clock;
    REQUIRE(p, poseidon_step(p, 0, &how) == 0);
    REQUIRE(p, poseidon_push(p, 0, clock, gradient, sizeof gradient) == 0);
    while ((answer = poseidon_wait(p, 0, clock + 1, 0.1)) == POSEIDON_NOT_YET) {
    }
    if (clock < 2) REQUIRE(p, answer == POSEIDON_HERE && poseidon_values(p, 0, clock + 1)[2] == 4);
  }
  REQUIRE(p, answer < 0 && strstr(poseidon_error(p), "the same learning rate, and another momentum") != NULL);
  REQUIRE(p, poseidon_read_state(p, 0) < 0);
  poseidon_free(p);
  return 0;
}

/* One of two workers: what worker 0 shares is on both when the run has begun, and what it gives has its bits. */
static int train_shared(const char* options) {
  const int is_first = strstr(options, "join") == NULL;
  const int64_t dims[] = {2};
  const float first[2] = {1, 2};
  const uint32_t words[2] = {0x7fa12345, 0x80000000}; /* a signalling NaN, -0.0 */
  float given[2];
  memcpy(given, words, sizeof given);
  int64_t batches = is_first ? 7 : 0;
  char same = 'x';
  const poseidon_shared shared[3] = {
      {"batches", "buffer int64 []", &batches, sizeof batches}, {"same", "byte", &same, 1}, {"empty", "buffer float [0]", NULL, 0}};
  const poseidon_shared twice[2] = {shared[0], shared[0]};
  const poseidon_parameter list[2] = {{"mean", dims, 1, first, POSEIDON_MEAN}, {"given", dims, 1, first, POSEIDON_GIVEN}};
  poseidon_parameter wrong = list[0];
  wrong.kind = 3;
  int answer;
  poseidon_run* p = poseidon_join(options);
  REQUIRE(p, p != NULL && poseidon_declare(p, &wrong, 1) < 0 && strstr(poseidon_error(p), "is of kind 3") != NULL);
  REQUIRE(p, poseidon_share(p, shared, 3) < 0 && strstr(poseidon_error(p), "after poseidon_declare") != NULL);
  REQUIRE(p, poseidon_declare(p, list, 2) == 0);
  REQUIRE(p, poseidon_share(p, twice, 2) < 0 && strstr(poseidon_error(p), "have the name \"batches\"") != NULL);
  REQUIRE(p, poseidon_share(p, shared, 3) == 0);
  REQUIRE(p, poseidon_share(p, shared, 3) < 0 && strstr(poseidon_error(p), "shared once") != NULL);
  while ((answer = poseidon_begin(p, 0.1)) == POSEIDON_NOT_YET) {
  }
  REQUIRE(p, answer == 0 && batches == 7 && same == 'x');
  if (!is_first) REQUIRE(p, poseidon_push(p, 1, 0, given, sizeof given) < 0 && strstr(poseidon_error(p), "whose versions worker 0 gives") != NULL);
  REQUIRE(p, poseidon_push(p, 0, 0, first, sizeof first) == 0);
  REQUIRE(p, (is_first ? poseidon_push(p, 1, 0, given, sizeof given) : poseidon_push_nothing(p, 1, 0)) == 0);
  for (uint32_t i = 0; i < 2; ++i) {
    while ((answer = poseidon_wait(p, i, 1, 0.1)) == POSEIDON_NOT_YET) {
    }
    REQUIRE(p, answer == POSEIDON_HERE && memcmp(poseidon_values(p, i, 1), i == 0 ? first : given, sizeof given) == 0);
  }
  while ((answer = poseidon_leave(p, NULL, 0.1)) == POSEIDON_NOT_YET) {
  }
  REQUIRE(p, answer == 0);
  poseidon_free(p);
  return 0;
}

int main(int count, char** words) {
  char options[256];
  if (poseidon_abi() != POSEIDON_ABI || strlen(poseidon_version()) == 0) return 1;
  REQUIRE(NULL, poseidon_join("listem=1") == NULL && strstr(poseidon_error(NULL), "\"listem\"") != NULL);
  REQUIRE(NULL, poseidon_join("nodes=2") == NULL && strstr(poseidon_error(NULL), "give listen= too") != NULL);
  REQUIRE(NULL, poseidon_begin(NULL, 0) < 0);
  poseidon_free(NULL);
  poseidon_free(poseidon_join(NULL)); /* never begun */
  if (train("") != 0) return 1;      /* the only worker */
  if (count < 2) {
    fprintf(stderr, "usage: program HOST:PORT, a free address\n");
    return 2;
  }
  if (pipe(gate) != 0) return 1;
  const pid_t child = fork(); /* the library has ended its threads: a fork is harmless here */
  close(gate[child == 0 ? 1 : 0]); /* so that nobody waits for one that has failed */
  snprintf(options, sizeof options, child == 0 ? "join=%s" : "listen=%s\nnodes=2", words[1]);
  int code = train(options);
  if (child != 0) snprintf(options, sizeof options, "listen=%s\nnodes=2\nroutes=sfb", words[1]);
  if (code == 0) code = train_by_factors(options);
  if (code == 0) code = train_by_optimizer(options);
  if (code == 0) code = train_shared(options);
  if (code == 0) code = train_compared(options);
  if (child == 0) return code;
  int status = 1;
  waitpid(child, &status, 0);
  return code != 0 || status != 0;
}
