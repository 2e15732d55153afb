/* poseidon.h - the C interface of libposeidon.so: one worker's part in a run whose model lives in another program.
 *
 * The program computes gradients. Poseidon exchanges them between all workers while the program goes on, and gives the means
 * back. The library joins the cluster inside the program's process: it copies no gradient.
 *
 *   poseidon_run* p = poseidon_join("listen=0.0.0.0:7600\nnodes=2\ntoken-file=token");
 *   poseidon_declare(p, list, count);            the parameters, the same list on all workers
 *   poseidon_share(p, list, count);              what else is to be worker 0's on all workers; optional
 *   poseidon_begin(p, timeout);                  until all workers are there
 *   for each clock c = 0, 1, ...:
 *     for each parameter i, when it is needed:   poseidon_wait(p, i, c, timeout), then read poseidon_values(p, i, c)
 *     for each parameter i, when it is there:    poseidon_push(p, i, c, gradient, bytes)
 *   poseidon_leave(p, NULL, timeout); poseidon_free(p);
 *
 * Clocks    A clock is one step of training. Clock c computes with version c of every parameter and makes version c + 1. The
 *           first clock is 0. Version 0 is what worker 0 declared; version c + 1 is the mean of all workers' gradients of
 *           clock c: their sum in the order of the workers, times 1/N. So all workers read the same bits, whatever arrives
 *           first. With one worker a mean is the gradient itself.
 * Memory    The values of version v lie at poseidon_values(p, i, v), for the whole run at two addresses in turn, and are never
 *           written by the program. They may be read from poseidon_wait(p, i, v) on until parameter i is pushed for clock v + 1.
 *           A gradient is lent by poseidon_push: its memory stays, unchanged, until poseidon_wait(p, i, clock + 1) or
 *           poseidon_collect has answered, or poseidon_leave has ended the run. A value is a float32; a parameter's values lie without gaps.
 * Factors   The gradient of a matrix [M, N] that is the product of u transposed and v, u [rows, M] and v [rows, N], can be given as
 *           u and v: poseidon_measured offers it. Where that is faster, all workers give it so from one clock on, which
 *           poseidon_route tells; each then makes the mean from all factors, equal up to rounding (1e-5 of the largest value).
 * Optimizer Where poseidon_optimize names one, version c + 1 is what that optimizer makes of version c and the mean: the workers share
 *           the work and the state. Before a gradient is pushed, poseidon_step says how its parameter steps with it; workers that say
 *           different things are told so.
 * Threads   Every function may be called from any thread, several at a time; only the calls for one parameter come in the
 *           order of its clocks, and nothing is called with a handle that poseidon_free has taken. poseidon_begin,
 *           poseidon_begin_clock, poseidon_wait, poseidon_collect and poseidon_leave block for as long as they are told. All others return in
 *           microseconds.
 * Process   The library starts its threads in poseidon_begin, and has ended them when poseidon_leave has answered. It installs no
 *           signal handler, prints nothing and never ends the process. After a fork the child calls nothing.
 *           It stays in the process when dlclose has closed it, and can be opened again.
 * Errors    A function that returns int returns a negative number when it fails; poseidon_error() then says in one line what
 *           went wrong. After a worker was lost, or has failed, every call fails with the same text; but see Losses.
 * Losses    With the option on-loss=go-on on all workers, the others go on without a worker that is lost, or has failed, or gives up: the
 *           clock that it has not finished is made with the gradients of those that are left, which are lent still, and poseidon_wait
 *           and poseidon_collect take longer. No clock is lost or made twice. For that nothing may be lent, or read, of a clock before all of
 *           the version before is here: take each version with poseidon_collect. Not with poseidon_optimize. Of a parameter of kind
 *           POSEIDON_GIVEN all workers push, so that the next one can give when worker 0 is lost. poseidon_view tells who is left.
 * Newcomers With the option newcomers=accept on all workers, and on-loss=go-on, others may join a run that trains. All stop before the same
 *           clock c, before which poseidon_begin_clock answers POSEIDON_GIVE_STATE: then each gives the state with which clock c computes, one
 *           block of bytes in its own words, which is the same on all workers but for the first bytes. The newcomer's poseidon_begin returns
 *           when it has all of it; poseidon_first_clock is c, poseidon_state_given the block, and its first push is of clock c. What
 *           poseidon_values and poseidon_share hold then counts nothing. Where a worker is lost meanwhile, the newcomer may be left out:
 *           poseidon_begin fails, and it can join again. Every clock begins with poseidon_begin_clock.
 * Version   A program compares poseidon_abi() with POSEIDON_ABI before it calls anything else.
 */
#ifndef POSEIDON_H
#define POSEIDON_H
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define POSEIDON_API __attribute__((visibility("default")))
#else
#define POSEIDON_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define POSEIDON_ABI 10

/* One worker of a run. */
typedef struct poseidon_run poseidon_run;

/* How the versions of a parameter come about. */
enum {
  POSEIDON_MEAN = 0, /* as Clocks and Optimizer above say */
  /* Version c + 1 is, bit for bit, the 4-byte words that worker 0 has pushed in clock c, whatever they are: no arithmetic is done with
     them, and no optimizer's step. The other workers push nothing. */
  POSEIDON_GIVEN = 1,
  /* As POSEIDON_MEAN, of values that have nothing in common: gradients of many small parameters, with flags among them. They stay float32
     where POSEIDON_INT8 or POSEIDON_INT4 is asked for, in which the smallest values are lost beside large ones. */
  POSEIDON_BUNDLE = 2
};

/* The library reads it during the call, and copies what it needs. */
typedef struct {
  const char* name;    /* unique; UTF-8 without control characters */
  const int64_t* dims; /* none: one value */
  uint32_t dims_count;
  const float* values; /* the first values. Worker 0's count; of the other workers they may be null, and those that equal worker 0's,
                          bit for bit, do not travel. They stay, unchanged, until poseidon_begin has returned 0, or poseidon_leave
                          has ended the run. */
  uint32_t kind;       /* POSEIDON_MEAN, POSEIDON_GIVEN or POSEIDON_BUNDLE; the same on all workers */
} poseidon_parameter;

/* What a program has beside its parameters, and all workers are to begin with: buffers, frozen weights. */
typedef struct {
  const char* name; /* unique among what is shared; UTF-8 */
  const char* kind; /* what it is, compared between workers and shown where it differs: "buffer torch.int64 [3, 4]" */
  void* bytes;      /* stay as poseidon_parameter's values. On other workers than 0 they are overwritten where they differ from worker
                       0's; on worker 0 they are only read */
  uint64_t size;    /* in bytes; may be 0 */
} poseidon_shared;

/* What poseidon_wait answers. */
enum {
  POSEIDON_HERE = 0,     /* the version is here: read it */
  POSEIDON_NOT_YET = 1,  /* the time is over */
  POSEIDON_NO_GRADIENT = 2 /* the version is here, and no worker had a gradient: nothing is to be read; with poseidon_optimize its
                              values are those of the version before */
};
/* What poseidon_begin answers where this worker was about to join workers that train, one of these was lost before it had all that it needs, and
 * the others go on without it. It may join again, with a new handle. */
enum { POSEIDON_LEFT_OUT = -2 };
/* What poseidon_begin_clock answers, besides. */
enum { POSEIDON_GIVE_STATE = 3 };

POSEIDON_API uint32_t poseidon_abi(void);
/* As poseidon-node --version; the library owns it. */
POSEIDON_API const char* poseidon_version(void);

/* Reads the options: one "name=value" a line, the names of poseidon-node's options without dashes.
 *   listen=HOST:PORT  nodes=N        worker 0 of several; without both, and without join: the only worker
 *   join=HOST:PORT[,HOST:PORT]       every other worker: where one of those listens that are in the run. With
 *                                    listen it listens there itself, else where the system says; with nodes, too, it begins the run where nobody
 *                                    at join is in one, so that one command begins, and comes back (newcomers=accept)
 *   token=TEXT or token-file=FILE    the cluster's secret; needed where other machines reach an address of this one
 *   tls-cert=FILE tls-key=FILE tls-ca=FILE    links and page are encrypted, on all workers or none
 *   wire=float32|float16|bfloat16|int8|int4    worker 0's counts: how values travel, see poseidon_wire; a worker that asks for another is refused
 *   routes=auto|ps|sfb|lowrank       worker 0's counts: factors where they are faster (auto), nowhere, wherever they are offered; lowrank: where
 *   rank=4|8                         the program makes its own steps, gradients of two dimensions or more go as two thin matrices of that rank (4)
 *                                    if these have at most half of the values: their means are others, and equal on all workers
 *   silence-limit=S  progress-limit=S  on-loss=go-on|end  newcomers=accept|refuse  link-mbit=N  trace=FILE  graph=FILE  web=[HOST:]PORT  web-token-file=FILE
 *   traits=NAME=VALUE;...            by what this program's gradients may differ from another worker's: "PyTorch=2.6.0;threads=2". Where workers
 *                                    have other values, a line says that results are not bit-equal to one process. VALUE|TEXT: for people, TEXT
 * Texts of the library name an option as it is written here, "token-file=FILE".
 * Starts nothing. Returns null where an option is wrong; poseidon_error(NULL) says which. */
POSEIDON_API poseidon_run* poseidon_join(const char* options);

/* What went wrong in the calling thread's last call that failed, with this handle or, for null, with any; "" if nothing did. The
 * library owns it; it is valid until that thread's next call that fails. */
POSEIDON_API const char* poseidon_error(const poseidon_run*);

/* Says which parameters there are. Once, before poseidon_begin. In the order in which the program needs them, until
 * poseidon_order says another one. */
POSEIDON_API int poseidon_declare(poseidon_run*, const poseidon_parameter* list, size_t count);

/* When poseidon_begin has returned 0, the bytes of all these are worker 0's, bit for bit, on every worker. What is equal already costs
 * no bytes on the wire but its digest's. Once, after poseidon_declare, before poseidon_begin; optional; names, kinds and sizes
 * are the same on all workers. */
POSEIDON_API int poseidon_share(poseidon_run*, const poseidon_shared* list, size_t count);

/* Who makes the steps: the program, with the mean gradients, and the workers only compare what poseidon_step says; or the workers, as an
 * optimizer of PyTorch, with its formulas and its bits on processors with AVX2. */
enum {
  POSEIDON_OWN = 0,
  POSEIDON_SGD = 1,  /* state: the momentum */
  POSEIDON_ADAM = 2, /* state: the first and the second moment */
  POSEIDON_ADAMW = 3 /* the same */
};
/* Says whose steps they are. The workers share an optimizer's, each makes those of a part of the values; it is the same on all of them. After
 * poseidon_declare, before poseidon_begin. `groups`: by parameter, the number of the group that it steps with; null: all with group 0.
 * A program that never calls it has no groups, and says nothing of its steps. */
POSEIDON_API int poseidon_optimize(poseidon_run*, int optimizer, const uint32_t* groups);

/* Once for a parameter whose optimizer has made steps before this run: their number, and where its arrays of state lie, in the order
 * above; null: zeros. The arrays stay until poseidon_begin returns. Every worker gives the same. */
POSEIDON_API int poseidon_first_state(poseidon_run*, uint32_t parameter, uint64_t steps, const float* const* state, size_t count);

typedef struct {
  double rate, weight_decay;
  double momentum;   /* Adam, AdamW: beta1 */
  double dampening;  /* SGD */
  double beta2, eps; /* Adam, AdamW */
  uint32_t nesterov; /* SGD: 0 or 1 */
  uint32_t lerp;     /* Adam, AdamW: 1 where the program's PyTorch forms the first moment by lerp_ */
  uint64_t rest;     /* a digest of what else all workers' steps have to have in common; changes no step */
} poseidon_hyperparameters;
/* How the parameters of a group step with the gradients that are pushed from now on; the same on all workers: else the run ends, with
 * both values. Not while another thread pushes one of them. */
POSEIDON_API int poseidon_step(poseidon_run*, uint32_t group, const poseidon_hyperparameters*);

/* With an optimizer whose steps the workers share: where this worker has the parameter's values, which its steps begin with from the next push
 * on. They are read from that push on until poseidon_wait of the version that it contributes to has returned, and must not change meanwhile;
 * between two such spans the program may write to them, all workers the same. Null, as before the first call: a step begins with the version
 * before, in the library's memory. After poseidon_begin, when the parameter's newest version has been waited for. */
POSEIDON_API int poseidon_step_from(poseidon_run*, uint32_t parameter, const float* values);

/* Copies the optimizer's state, all workers' parts of it, when every parameter's newest version has been waited for and none been pushed
 * since. Returns 0, or POSEIDON_NOT_YET when `timeout_s` is over: call it again to go on waiting. */
POSEIDON_API int poseidon_read_state(poseidon_run*, double timeout_s);
/* What poseidon_read_state has copied last: an array of state of a parameter. Null: there is none. */
POSEIDON_API const float* poseidon_state(poseidon_run*, uint32_t parameter, uint32_t array);
/* How many steps a parameter has made, those of poseidon_first_state included; -1: the run does not train, or there is no such parameter. */
POSEIDON_API int64_t poseidon_steps(poseidon_run*, uint32_t parameter);

/* Joins the cluster: returns 0 when all workers have joined, their lists are the same, and version 0 and all that is shared is here;
 * POSEIDON_NOT_YET when `timeout_s` is over: call it again to go on waiting. What it waits for is among the lines of poseidon_next_line.
 * Where another thread calls poseidon_leave it fails, and says so. POSEIDON_LEFT_OUT: join again. */
POSEIDON_API int poseidon_begin(poseidon_run*, double timeout_s);

/* After poseidon_begin: this worker's number, and how many there are. 0 before. */
POSEIDON_API uint32_t poseidon_worker(const poseidon_run*);
POSEIDON_API uint32_t poseidon_workers(const poseidon_run*);

/* With whom this worker has trained. The members of a run change where it outlives losses: each change is a view, which holds from clock
 * `first_clock` on; the means of that clock and of those after it are over its members. `index`: 0 is the view that training began with.
 * Writes `first_clock`, and up to `room` seats by worker: a seat is the number that a worker has for as long as it takes part, and nobody
 * has had it before. Returns the number of workers of that view; 0: there is none yet. A view of which no clock has been finished may be
 * replaced by another one, at its index or at one before. The newest view may be ahead of poseidon_worker,
 * which changes when poseidon_collect has brought a whole version. */
POSEIDON_API int poseidon_view(const poseidon_run*, size_t index, uint64_t* first_clock, uint32_t* seats, size_t room);

/* By parameter: its place in the order in which the program needs fresh values; what is needed first is sent first. Each
 * place is less than the number of parameters. It holds for what is pushed from now on. */
POSEIDON_API int poseidon_order(poseidon_run*, const uint32_t* places);

/* Lends this worker's gradient of a parameter; `bytes` is 4 times the number of its values. */
POSEIDON_API int poseidon_push(poseidon_run*, uint32_t parameter, uint64_t clock, const float* gradient, size_t bytes);
/* This worker has no gradient of it in this clock: it counts as zeros where another worker has one. Every parameter is
 * pushed, by one of the three, in every clock. */
POSEIDON_API int poseidon_push_nothing(poseidon_run*, uint32_t parameter, uint64_t clock);

/* How values travel. */
enum {
  POSEIDON_FLOAT32 = 0,
  POSEIDON_FLOAT16 = 1, /* half of the bytes, both ways */
  POSEIDON_BFLOAT16 = 2, /* the same, with the range of float32 */
  POSEIDON_INT8 = 3,     /* a fourth: blocks of 256 values, integers from -127 to 127 times a step of each block, which follows its largest value */
  POSEIDON_INT4 = 4      /* an eighth: integers from -7 to 7 */
};
/* Gradients that are pushed from now on travel in this format, and so do their means: each is rounded to the nearest, as a conversion in
 * the program would, finite values beyond the format's range to infinity. The mean is formed of the rounded gradients in float32 and
 * rounded once; all workers read the same bits, and nothing is kept for the next clock. In POSEIDON_INT8 and POSEIDON_INT4 a value that is not
 * finite makes its block NaN, and parameters of fewer than 4096 values stay float32. Factors, and what is of the kind POSEIDON_GIVEN, are
 * not rounded; nor is anything where there is one worker. All workers call it before the same clock, or the run ends, with both
 * values. Until then worker 0's option wire holds. Returns the format that held before, or a negative number. After poseidon_begin, not
 * while another thread pushes. With poseidon_optimize the option holds for the whole run: gradients leave, and steps come back, rounded,
 * with what rounding took added to those of the next clock. */
POSEIDON_API int poseidon_wire(poseidon_run*, int format);

/* What a parameter costs this worker, as it has measured. */
typedef struct {
  double backward_s;    /* seconds of the backward pass for it, until its gradient is there */
  double product_s;     /* of these, those of the product of its factors; 0 without factors */
  uint32_t factor_rows; /* of u and v, at most, in a clock; 0: it is only pushed as a whole */
} poseidon_load;

/* Offers factors, once, after some clocks: `loads` by parameter. When all workers have, worker 0 chooses, and routes may change;
 * so from now on each clock begins with poseidon_begin_clock. */
POSEIDON_API int poseidon_measured(poseidon_run*, const poseidon_load* loads);
/* Begins a clock, before its first push: where routes change before it, or others join, waits until they have. Returns 0, or
 * POSEIDON_NOT_YET when `timeout_s` is over: call it again to go on waiting. With the option newcomers=accept also POSEIDON_GIVE_STATE: call
 * poseidon_give_state, and then this again. */
POSEIDON_API int poseidon_begin_clock(poseidon_run*, uint64_t clock, double timeout_s);
/* Gives what newcomers need, of the clock for which poseidon_begin_clock has asked: the bytes are copied. The first `own` ones come from the
 * oldest worker alone; the others are the same on all workers, or newcomers are sent away. Where newcomers
 * have gone meanwhile, it answers 0 and does nothing. */
POSEIDON_API int poseidon_give_state(poseidon_run*, uint64_t clock, const void* bytes, uint64_t size, uint64_t own);
/* The clock that this worker has joined with; 0: it has begun with the others. From poseidon_begin on. */
POSEIDON_API uint64_t poseidon_first_clock(const poseidon_run*);
/* What a newcomer was given, and its size; valid until the first poseidon_begin_clock. Null: this worker has begun with the others. Size 0: the
 * others were about to leave, and have given nothing. */
POSEIDON_API const void* poseidon_state_given(const poseidon_run*, uint64_t* size);
/* How the gradient of a parameter is given in the clock that has begun: 0 by poseidon_push, 1 by poseidon_push_factors. */
POSEIDON_API int poseidon_route(poseidon_run*, uint32_t parameter);
/* Copies this worker's factors of a gradient, which may have fewer rows than were offered; they need not stay. `mean`: where the mean of
 * all workers is to be made, memory of the program that stays until poseidon_wait has answered; null: at poseidon_values. Without
 * poseidon_optimize only. */
POSEIDON_API int poseidon_push_factors(poseidon_run*, uint32_t parameter, uint64_t clock, const float* u, const float* v,
                                       uint32_t rows, float* mean);

/* Waits until a version of a parameter is here. Returns one of the three answers above, or a negative number.
 * `timeout_s`: 0 does not block. */
POSEIDON_API int poseidon_wait(poseidon_run*, uint32_t parameter, uint64_t version, double timeout_s);

/* How many of these parameters, from the first one on, are at a version or a later one: what poseidon_wait would answer for each of
 * them is written to `answers`, which has room for `count`. Does not block, and costs less than to ask for each. A run that has failed
 * is poseidon_wait's to tell. */
POSEIDON_API int poseidon_look(poseidon_run*, const uint32_t* parameters, uint32_t count, uint64_t version, uint8_t* answers);

/* Takes a version of many parameters in the order in which they come. `answers` has POSEIDON_NOT_YET for those that are to come; each that
 * comes is copied to its address in `to`, and its answer written; null in `to`: it is not copied, and the call returns, so that the program
 * reads it. Returns how many are still to come: 0, all are here; more, when `timeout_s` is over, too. Blocks for as long as it is told. */
POSEIDON_API int poseidon_collect(poseidon_run*, const uint32_t* parameters, uint32_t count, uint64_t version, float* const* to,
                                  uint8_t* answers, double timeout_s);

/* Where a version of a parameter lies; null before poseidon_begin and for an unknown parameter. */
POSEIDON_API const float* poseidon_values(poseidon_run*, uint32_t parameter, uint64_t version);

/* Tells what this worker's clock has come to: its loss, and how many samples it had. For the page and the log; optional. */
POSEIDON_API int poseidon_report(poseidon_run*, uint64_t clock, double loss, uint64_t samples);

/* What poseidon-node would show its user, one line each, without the newline; null when there is no more. The library keeps
 * the newest 1000. Valid until the next call on the same handle. */
POSEIDON_API const char* poseidon_next_line(poseidon_run*);

/* Ends this worker's part. `reason`: null where training is done, after the same clock on all workers; else why this worker
 * gives up, in one line that the other workers' users read. Returns 0 when all workers have trained as many clocks and the
 * library's threads have ended; POSEIDON_NOT_YET when `timeout_s` is over: call it again to go on waiting, or with a reason;
 * a negative number where the run has failed, here or on another worker: then, too, the threads have ended. */
POSEIDON_API int poseidon_leave(poseidon_run*, const char* reason, double timeout_s);

/* Ends this worker's part while the others may train on, in a run with on-loss=go-on. What it has trained counts: it serves the others until one
 * of them begins a clock that it has not trained, or until all have left after the same one. Returns as poseidon_leave. */
POSEIDON_API int poseidon_leave_others(poseidon_run*, double timeout_s);

/* Frees the handle and what it owns, its values too. A worker that has not left gives up first. Null: nothing. */
POSEIDON_API void poseidon_free(poseidon_run*);

#ifdef __cplusplus
}
#endif
#endif
