// actors/training/solver_setup.hpp - what a solver is told when it is spawned.
#pragma once
#include "actors/core/overlap_meter.hpp"
#include "actors/core/progress.hpp"
#include "data/sample_schedule.hpp"
#include "messages/training.hpp"
#include "models/caffe.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace poseidon {

/// One net of the run as the solver sees it: where passes enter and what comes out.
struct solver_net {
  std::vector<std::vector<port<start_pass>>> sources;  ///< [replica][data layer]
  std::vector<output_value> outputs;
  test_share share;  ///< test nets
};

/// What one view asks of this node.
struct solver_part {
  worker_id self{};
  worker_id leader{};  ///< shows what all nodes report
  std::size_t workers = 1;
  std::uint32_t replicas = 1;
  std::uint32_t micro_batches = 1;     ///< of this node in a clock
  std::uint64_t images_per_clock = 0;  ///< samples per clock on this node
  std::uint64_t images_of_all = 0;     ///< samples per clock, summed over all nodes
  /// Where passes are weighed: the weight of each replica's outputs in the mean of this node. Empty: the passes of all
  /// replicas count alike.
  std::vector<double> weights;
  std::uint64_t epoch = 0, first_clock = 0;  ///< of the view
  /// Where members may be lost: when this node has a version whole, all members have the one so many versions before it.
  std::optional<std::uint64_t> floor_lag;
  /// First sample of a training pass: (clocks since the view's first, micro-batch, replica).
  std::function<std::uint64_t(std::uint64_t, std::uint32_t, std::uint32_t)> first_sample;
};

struct solver_setup {
  solver_part part;  ///< changes with the view
  std::size_t layers_that_learn = 0;
  bool barrier = false;
  std::uint64_t test_phases = 0;  ///< completed by the run that this one resumes
  ::caffe::SolverParameter spec;
  /// Is told steps and tests, on the leader values and snapshots, too; may be empty.
  std::shared_ptr<progress> display;
  std::function<traffic()> carried;  ///< by this node's links; may be empty
  std::shared_ptr<const overlap_meter> overlap;
};

}  // namespace poseidon
