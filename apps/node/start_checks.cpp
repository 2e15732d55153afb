#include "apps/node/start_checks.hpp"

#include "apps/plugin/open_plugin.hpp"
#include "models/files/atomic_file.hpp"
#include "models/files/hdf5_file.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <unistd.h>

namespace poseidon::app {

namespace {

/// Above this momentum, docs/user-guide.md asks for care: LeNet diverged with 0.9 two clocks apart.
constexpr float most_momentum_with_staleness = 0.5f;

/// As Caffe does: a file is made beside the snapshots to come.
void try_snapshot_prefix(const solver_file& solver) {
  const std::filesystem::path prefix = solver.spec.snapshot_prefix();
  const auto refuse = [&](const std::string& why) {
    throw spec_error(solver.where, "no snapshot can be written to snapshot_prefix \"" +
                                       prefix.string() + "\": " + why +
                                       ". Name a folder in which this user may write.");
  };
  std::error_code failed;
  if (prefix.has_parent_path()) std::filesystem::create_directories(prefix.parent_path(), failed);
  if (failed) refuse(failed.message());
  for (const char* file : {"_iter_", "_from_", "_best_iter_", "_run", ".routes"})
    remove_leftovers(prefix.string() + file);
  const auto probe = prefix.string() + ".probe." + std::to_string(getpid());
  errno = 0;
  if (!std::ofstream(probe)) refuse(std::strerror(errno));
  std::filesystem::remove(probe, failed);
}

}  // namespace

void check_solver(const solver_file& solver) {
  const auto& spec = solver.spec;
  if (!spec.has_max_iter())
    throw spec_error(solver.where,
                     "it has no max_iter, so nothing would be trained. Say how many iterations, as "
                     "in max_iter: 10000.");
  if (spec.snapshot() == 0 && !spec.snapshot_after_train()) return;
  try_snapshot_prefix(solver);
  if (spec.snapshot_format() == ::caffe::SolverParameter::HDF5)
    need_hdf5(to_string(solver.where) + ": snapshot_format: HDF5");
}

std::vector<std::string> take_solver_mode(const solver_file& solver, node_options& o) {
  const auto& spec = solver.spec;
  const bool wanted =
      spec.has_solver_mode() && spec.solver_mode() == ::caffe::SolverParameter_SolverMode_GPU;
  if (o.devices_given) return {};
  std::string why;
  const auto ordinal = std::max(0, spec.device_id());
  if (wanted) {
    try {
      const auto gpus = open_plugin(o.gpu_words.plugin).list().size();
      if (static_cast<std::size_t>(ordinal) < gpus) {
        o.gpus = gpus_from(o.gpu_words, {ordinal}, std::to_string(ordinal));
        return {};
      }
      why = "this machine has " + plural(gpus, "GPU") + ".";
    } catch (const std::runtime_error& e) {
      why = e.what();
    }
  }
  if (!o.gpu_option.empty()) throw belongs_to_gpus(o.gpu_option);
  if (!wanted) return {};
  return {to_string(solver.where) + ": solver_mode: GPU asks for GPU " + std::to_string(ordinal) +
          ", and the CPU trains: " + why +
          " --devices cpu trains without this line, --devices 0 needs a GPU."};
}

std::vector<std::string> warn_of_staleness(const solver_file& solver, const node_options& o) {
  const auto& spec = solver.spec;
  const auto staleness = spec.poseidon().staleness();
  const bool adds_up = spec.type() == "SGD" || spec.type() == "Nesterov";
  if (o.nodes < 2 || staleness == 0 || !adds_up || spec.momentum() <= most_momentum_with_staleness)
    return {};
  return {"staleness " + std::to_string(staleness) + " with momentum " +
          plain_number(spec.momentum()) +
          " may diverge: late gradients and large momentum amplify each other. LeNet diverged with "
          "staleness 2, momentum 0.9 and base_lr 0.01. Take a momentum of at most 0.5, or a lower "
          "base_lr."};
}

namespace {

/// Why no node can go on without another one; empty: it can.
std::string why_none_survives(const run_definition& run) {
  if (run.solver.spec.poseidon().own_data())
    return "with --own-data each node trains on records that no other node has.";
  return {};
}

bool may_have_others(const node_options& o) {
  return o.nodes > 1 || o.listen;
}

/// What copies of solver state cost this run, so that its user has to ask for them; empty: hardly anything.
std::string cost_of_copies(const node_options& o) {
  if (o.gpus)
    return "where the first node trains on GPUs, that costs time, because layers that send factors "
           "are then updated on the host";
  if (o.wire != "float32" || o.lossy != "none")
    return "where values travel rounded (--wire, --lossy), that costs bytes, because the nodes "
           "that keep "
           "copies of solver state get float32";
  return {};
}

}  // namespace

std::string note_on_losses(const run_definition& run, const node_options& o) {
  const auto cost = cost_of_copies(o);
  if (!may_have_others(o) || o.survive || cost.empty() || !why_none_survives(run).empty())
    return {};
  return "losses: a lost node ends this run; with --survive 1 the others would go on (" + cost +
         ")";
}

std::vector<std::string> take_survive(run_definition& run, const node_options& o) {
  const bool by_default = may_have_others(o) && cost_of_copies(o).empty();
  const auto wanted = o.survive.value_or(by_default ? 1 : 0);
  run.zeroes_lost_state = o.lost_state == "zero";
  const std::string no_effect = " has no effect: a lost node ends the run";
  if (wanted == 0)
    return run.zeroes_lost_state
               ? std::vector{"--lost-state zero with --survive 0" + no_effect + "."}
               : std::vector<std::string>{};
  const auto why = why_none_survives(run);
  if (why.empty()) {
    run.survive = wanted;
    return {};
  }
  if (!o.survive && run.zeroes_lost_state) return {"--lost-state zero" + no_effect + ": " + why};
  if (!o.survive) return {};
  return {"--survive " + std::to_string(wanted) +
          " has no effect, no node keeps a copy of another one's solver state: " + why};
}

}  // namespace poseidon::app
