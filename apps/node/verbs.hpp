// apps/node/verbs.hpp - what poseidon-node does besides training: Caffe's other verbs.
#pragma once
#include "apps/bare/bare_run.hpp"
#include "apps/node/devices.hpp"
#include "apps/terminal/reporter.hpp"

#include <string>

namespace poseidon::app {

/// Each takes the arguments after the verb and returns the exit code.
/// Errors   std::invalid_argument (wrong use, bad file), std::runtime_error.
int test_verb(int argc, char** argv);
int time_verb(int argc, char** argv);
int device_query_verb(int argc, char** argv);
int status_verb(int argc, char** argv);

/// One net as a run of its own: what `test` and `time` work on.
struct model_options {
  std::string model, weights, data_root, stages;
  std::optional<std::string> synthetic;
  int level = 0;
  std::uint32_t replicas = 0;       ///< 0: chosen for the net and the cores
  std::uint32_t readers = 0;        ///< threads that fill each replica's batches; 0: chosen
  std::optional<gpu_request> gpus;  ///< instead of CPUs
};
[[nodiscard]] bare_run make_model_run(const model_options& o, ::caffe::Phase phase,
                                      const task_display& display);
/// What the user is to know of the run before it begins.
void say_first(const bare_run& run, reporter& out);

/// The same net with its shapes, but nothing compiled and no data opened that --synthetic can stand for.
[[nodiscard]] net make_model_net(const model_options& o, ::caffe::Phase phase);

}  // namespace poseidon::app
