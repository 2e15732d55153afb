// apps/node/verbs.hpp - poseidon-node's verbs.
#pragma once
#include "apps/bare/bare_run.hpp"
#include "apps/node/devices.hpp"
#include "apps/terminal/reporter.hpp"

#include <span>
#include <string>

namespace poseidon::app {

struct verb {
  const char* name;
  const char* about;  ///< for the help
  int (*run)(int argc, char** argv);
};
/// Those that --help lists.
[[nodiscard]] std::span<const verb> all_verbs();

/// Each takes the arguments after the verb and returns the exit code.
/// Errors   std::invalid_argument (wrong use, bad file), std::runtime_error.
int train_verb(int argc, char** argv);
int check_verb(int argc, char** argv);
int test_verb(int argc, char** argv);
int time_verb(int argc, char** argv);
int device_query_verb(int argc, char** argv);
int status_verb(int argc, char** argv);
int members_verb(int argc, char** argv);
int leave_verb(int argc, char** argv);
int go_on_verb(int argc, char** argv);
int classify_verb(int argc, char** argv);
int option_table_verb(int argc, char** argv);

/// A run of one net, for `test` and `time`.
struct model_options {
  std::string model, weights, data_root, stages;
  std::optional<std::string> synthetic;
  int level = 0;
  std::uint32_t replicas = 0;       ///< 0: chosen for the net and the cores
  std::uint32_t readers = 0;        ///< threads that fill each replica's batches; 0: chosen
  std::optional<gpu_request> gpus;  ///< instead of CPUs
  std::string math = "auto";        ///< of CPUs
};
[[nodiscard]] bare_run make_model_run(const model_options& o, ::caffe::Phase phase,
                                      const task_display& display);
/// Whether a net has an Input layer, as deploy nets have: it names no data.
[[nodiscard]] bool has_input(const net_file& file);
/// Prints the warnings and remarks about the run before it begins.
void say_first(const bare_run& run, reporter& out);

/// The net of make_model_run() with its shapes, without compiling it or opening data that --synthetic replaces.
[[nodiscard]] net make_model_net(const model_options& o, ::caffe::Phase phase);

}  // namespace poseidon::app
