// actors/run/compiled_run.hpp
//
// Everything that a node computes with, before there are actors: nets resolved and compiled into replicas,
// data sources opened, parameters cut and stored. compile_run.hpp makes it, a training_graph puts actors on it.
#pragma once
#include "actors/core/progress.hpp"
#include "actors/core/span_phase.hpp"
#include "actors/parameters/own_updates.hpp"
#include "actors/parameters/parameter_store.hpp"
#include "actors/parameters/pass_versions.hpp"
#include "actors/run/net_outputs.hpp"
#include "actors/run/run_definition.hpp"
#include "data/sample_schedule.hpp"
#include "data/source.hpp"
#include "models/device/device.hpp"
#include "models/net/net.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace poseidon {

struct compiled_net {
  net graph;
  /// Where passes are weighed: the net of the replicas from `larger` on, which take one sample less than those before.
  std::optional<net> smaller;
  std::uint32_t larger = 0;
  /// By replica, then place in `graph.parameters`: what its kernels read.
  std::vector<std::vector<const parameter_values*>> values;
  std::vector<std::shared_ptr<replica>> replicas;
  std::vector<std::size_t> data_layers;
  std::vector<std::vector<std::shared_ptr<const poseidon::batch>>> fed;  ///< by replica, data layer
  std::vector<std::shared_ptr<const sample_source>> sources;             ///< by data layer
  std::uint64_t batch = 0;  ///< samples per pass and replica; `smaller` has one less
  std::vector<output_value> outputs;
  std::vector<layer_outputs> readers;
  /// Test nets, by place in `graph.parameters`: the parameter of the train net.
  std::vector<parameter_id> to_train;

  /// The train net's parameter whose values parameter `p` of `graph` has.
  [[nodiscard]] parameter_id trained(std::size_t p) const {
    return to_train.empty() ? as_id<parameter_id>(p) : to_train[p];
  }
  [[nodiscard]] const net& graph_of(std::size_t replica) const {
    return smaller && replica >= larger ? *smaller : graph;
  }
  [[nodiscard]] std::uint64_t batch_of(std::size_t replica) const {
    return smaller && replica >= larger ? batch - 1 : batch;
  }
};

struct compiled_run {
  std::uint32_t replicas = 1;
  std::size_t readers = 1;          ///< threads that fill each replica's batches
  std::uint32_t micro_batches = 1;  ///< of this node in a clock
  node_shares shares;               ///< as weighed_shares() has them for this view
  std::size_t joined = 1;           ///< leading replicas whose gradients the device adds
  std::uint32_t passes_added = 1;   ///< micro-batches of a clock whose gradients the device adds
  compiled_net train;
  std::vector<compiled_net> tests;
  std::shared_ptr<parameter_store> store;
  std::shared_ptr<device_updates> updates;  ///< what the device updates by itself; null: nothing
  std::vector<std::shared_ptr<pass_versions>> pins;  ///< by replica; empty at staleness 0
  std::shared_ptr<own_updates> own;                  ///< with outer steps; else null
  std::uint64_t whole_batch = 0;                     ///< the train net's batch, as its file says
  std::vector<bool> by_factors;       ///< by layer of the train net: route factor_broadcast
  std::vector<std::string> warnings;  ///< what its user is to know before it begins
  std::vector<std::string> remarks;   ///< the device's: device::take_remarks()
};

/// Which samples each pass of the train net works on.
[[nodiscard]] sample_schedule schedule_of(const run_definition& run, const compiled_run& compiled);

/// Samples of this node in a clock.
[[nodiscard]] std::uint64_t samples_of_node(const compiled_run& compiled);

/// Micro-batches of a clock whose gradients the device adds by itself: all of them, or 1. With several replicas it is 1,
/// because the replicas' gradients are added before the micro-batches'.
[[nodiscard]] std::uint32_t passes_added(const compiled_run& c, const run_definition& run,
                                         const device& compute);

/// False where the host has to see each gradient, or several versions of the parameters. Otherwise a device that makes
/// updates may update parameters whose gradients go to no other node.
[[nodiscard]] bool may_update_on_device(const run_definition& run);

/// What the device updates by itself: compiled_run::updates. To be called before the first pass.
[[nodiscard]] std::shared_ptr<device_updates> updates_of(const compiled_run& c,
                                                         const run_definition& run,
                                                         device& compute);

/// What the trace says of a replica's gradient on an asynchronous device.
[[nodiscard]] span_phase copy_phase_of(const compiled_run& c, parameter_id parameter,
                                       std::size_t replica);

/// Samples in a pass of a net, by its last data layer; 0 without one.
[[nodiscard]] std::uint64_t batch_of(const net& n);

/// The number of replicas over which this node splits a batch of this size.
[[nodiscard]] std::uint32_t replicas_of(const node_spec& node, std::uint64_t batch);

/// Threads that fill the batches of each of `replicas`.
[[nodiscard]] std::size_t readers_of(const node_spec& node, std::size_t replicas);

/// The largest number of replicas, up to `cores`, that divides the batch and leaves each at least 8 samples; or 1.
[[nodiscard]] std::uint32_t default_replicas(std::uint64_t batch, std::uint32_t cores);

}  // namespace poseidon
