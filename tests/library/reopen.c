/* tests/library/reopen.c - a process opens the library, trains, and closes it, again and again.
 *
 *   test_library_reopen FILE    libposeidon.so */
#include "apps/library/poseidon.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* In kB, of this process. */
static long resident(void) {
  char line[256];
  long kb = 0;
  FILE* status = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, status) != NULL && sscanf(line, "VmRSS: %ld", &kb) != 1) {
  }
  fclose(status);
  return kb;
}

#define FIND(name) \
  __typeof__(&poseidon_##name) name; \
  *(void**)&name = dlsym(library, "poseidon_" #name)

static int train(const char* file) {
  const int64_t dims[] = {4};
  const float values[4] = {1, 2, 3, 4};
  const poseidon_parameter list[1] = {{"w", dims, 1, values, POSEIDON_MEAN}};
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  FIND(join);
  FIND(declare);
  FIND(begin);
  FIND(push);
  FIND(wait);
  FIND(leave);
  FIND(free);
  poseidon_run* p = join("");
  if (p == NULL || declare(p, list, 1) != 0 || begin(p, 60) != 0) return 1;
  for (uint64_t clock = 0; clock < 20; ++clock)
    if (push(p, 0, clock, values, sizeof values) != 0 || wait(p, 0, clock + 1, 60) != POSEIDON_HERE) return 1;
  if (leave(p, NULL, 60) != 0) return 1;
  free(p);
  return dlclose(library);
}

int main(int count, char** words) {
  enum { rounds = 30, first = 10, most_kb = 8192 }; /* a round that kept its threads' stacks or its run would take MBs each */
  long before = 0;
  if (count != 2) return 2;
  for (int i = 0; i < rounds; ++i) {
    if (train(words[1]) != 0) return 1;
    if (i == first) before = resident();
  }
  const long grown = resident() - before;
  if (grown < most_kb) return 0;
  fprintf(stderr, "%d rounds have taken %ld kB, expected less than %d\n", rounds - first, grown, most_kb);
  return 1;
}
