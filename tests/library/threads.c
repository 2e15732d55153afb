/* tests/library/threads.c - what one thread asks for while another one waits.
 *
 *   test_library_threads HOST:PORT    a free address, at which nobody joins */
#include "apps/library/poseidon.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static poseidon_run* run;
static char why[512];

static void* begin(void* unused) {
  const int answer = poseidon_begin(run, 1e9);
  snprintf(why, sizeof why, "%d %s", answer, poseidon_error(run));
  return unused;
}

/* poseidon_begin waits for ever, for a worker that never comes; another thread sees what it waits for, and ends the run. */
int main(int count, char** words) {
  const int64_t dims[] = {1};
  const float value = 1;
  const poseidon_parameter list[1] = {{"w", dims, 1, &value, POSEIDON_MEAN}};
  char options[256];
  const char* line = NULL;
  pthread_t waits;
  int answer;
  if (count != 2) return 2;
  snprintf(options, sizeof options, "listen=%s\nnodes=3", words[1]);
  run = poseidon_join(options);
  if (run == NULL || poseidon_declare(run, list, 1) != 0 || pthread_create(&waits, NULL, begin, NULL) != 0) return 1;
  while (line == NULL || strstr(line, "waiting for 2 workers") == NULL) line = poseidon_next_line(run);
  if (strstr(line, words[1]) == NULL) return 1;
  while ((answer = poseidon_leave(run, "its user has had enough", 0.1)) == POSEIDON_NOT_YET) {
  }
  if (answer >= 0 || strcmp(poseidon_error(run), "its user has had enough") != 0) return 1;
  pthread_join(waits, NULL);
  if (strcmp(why, "-1 this worker has left the run before it began: its user has had enough") != 0) {
    fprintf(stderr, "begin: %s\n", why);
    return 1;
  }
  poseidon_free(run);
  return 0;
}
