// actors/run/compiled_run.hpp
//
// Everything that a node computes with, before there are actors: nets resolved and compiled into replicas,
// data sources opened, parameters cut and stored. Pure construction; spawn_training() puts actors on it.
#pragma once
#include "actors/core/long_task.hpp"
#include "actors/core/progress.hpp"
#include "actors/parameters/parameter_store.hpp"
#include "actors/parameters/pass_versions.hpp"
#include "actors/run/run_definition.hpp"
#include "data/sample_schedule.hpp"
#include "data/source.hpp"
#include "models/device/device.hpp"
#include "models/net/net.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace poseidon {

/// An output as its layer reads it: `layer` is the producer, `first` the place of its first value.
struct layer_outputs {
  std::size_t layer = 0;
  std::size_t first = 0;
  std::vector<std::size_t> blobs;
  std::vector<bool> summed;  ///< by blob: too long to print, but a loss: its sum is one value
};

struct compiled_net {
  net graph;
  /// With uneven shares: that of the replicas from `larger` on, which take a sample fewer than those before.
  std::optional<net> smaller;
  std::uint32_t larger = 0;
  /// By replica, then parameter of `graph`: what its kernels read.
  std::vector<std::vector<const parameter_values*>> values;
  std::vector<std::shared_ptr<replica>> replicas;
  std::vector<std::size_t> data_layers;
  std::vector<std::vector<std::shared_ptr<const poseidon::batch>>> fed;  ///< by replica, data layer
  std::vector<std::shared_ptr<const sample_source>> sources;             ///< by data layer
  std::uint64_t batch = 0;  ///< samples per pass and replica; `smaller` has one less
  std::vector<output_value> outputs;
  std::vector<layer_outputs> readers;
  std::vector<std::size_t> to_train;  ///< test nets: parameter -> train parameter

  [[nodiscard]] const net& graph_of(std::size_t replica) const {
    return smaller && replica >= larger ? *smaller : graph;
  }
  [[nodiscard]] std::uint64_t batch_of(std::size_t replica) const {
    return smaller && replica >= larger ? batch - 1 : batch;
  }
};

struct compiled_run {
  std::uint32_t replicas = 1;
  std::size_t readers = 1;  ///< threads that fill each replica's batches
  std::uint32_t micro_batches = 1;
  std::size_t joined = 1;          ///< leading replicas whose gradients the device adds
  std::uint32_t passes_added = 1;  ///< micro-batches of a clock whose gradients the device adds
  compiled_net train;
  std::vector<compiled_net> tests;
  std::shared_ptr<parameter_store> store;
  std::shared_ptr<device_updates> updates;  ///< what the device updates by itself; null: nothing
  std::vector<std::shared_ptr<pass_versions>> pins;  ///< by replica; empty at staleness 0
  /// Of the train net as its file says: a node's, where shares are equal.
  std::uint64_t whole_batch = 0;
  std::vector<bool> by_factors;       ///< by layer of the train net: route factor_broadcast
  std::vector<std::string> warnings;  ///< what its user is to know before it begins
  std::vector<std::string> remarks;   ///< of the device: device::take_remarks()
};

/// Which samples each pass of the train net works on.
[[nodiscard]] sample_schedule schedule_of(const run_definition& run, const compiled_run& compiled);

/// Samples of this node in a clock.
[[nodiscard]] std::uint64_t samples_of_node(const compiled_run& compiled);

/// The values of one layer's outputs after a forward pass of `copy`.
[[nodiscard]] std::vector<float> read_outputs(const compiled_net& net, const replica& copy,
                                              const layer_outputs& reader);
/// The same from the values of reader.blobs.
[[nodiscard]] std::vector<float> make_outputs(const layer_outputs& reader,
                                              const std::vector<std::vector<float>>& values);

/// Opens the data, builds the nets, compiles the replicas. `display` sees how far that is.
/// Errors   spec_error for what the user's files say, and for routes that do not fit the net;
///          std::runtime_error for what the device refuses.
[[nodiscard]] std::unique_ptr<compiled_run> compile_run(const run_definition& run,
                                                        const node_spec& node,
                                                        const task_display& display = {});

/// The train net as one replica would have it, with this node's share of the batch: what routes are chosen by. Opens
/// sources for their shapes alone.
/// Errors   spec_error, as compile_run.
[[nodiscard]] net resolve_train_net(const run_definition& run, const node_spec& node);

/// Micro-batches of a clock whose gradients the device adds by itself: all of them, or 1. Several replicas of a node are
/// added first, whoever adds them.
[[nodiscard]] std::uint32_t passes_added(const compiled_run& c, const run_definition& run,
                                         const device& compute);

/// Does the host have to see each gradient, or several versions of the parameters? Else a device that can may update
/// what no other node has to do with.
[[nodiscard]] bool may_update_on_device(const run_definition& run);

/// What the device is to update by itself: see compiled_run::updates. Before the first pass.
[[nodiscard]] std::shared_ptr<device_updates> updates_of(const compiled_run& c,
                                                         const run_definition& run,
                                                         device& compute);

/// What becomes of the gradient of a replica on a device that goes on by itself, for the trace.
[[nodiscard]] std::string_view home_phase_of(const compiled_run& c, std::size_t parameter,
                                             std::size_t replica);

/// Samples in a pass of a net, by its last data layer; 0: it has none.
[[nodiscard]] std::uint64_t batch_of(const net& n);

/// Replicas that this node would split that batch over.
[[nodiscard]] std::uint32_t replicas_of(const node_spec& node, std::uint64_t batch);

/// Threads that fill the batches of each of `replicas`.
[[nodiscard]] std::size_t readers_of(const node_spec& node, std::size_t replicas);

/// Replicas for a batch on this many cores: as many as divide it and leave each at least 8 samples.
[[nodiscard]] std::uint32_t default_replicas(std::uint64_t batch, std::uint32_t cores);

/// The first values: fillers, then the layers of each file of `weights` by name, one file after the other.
/// Writes   every parameter's place of `version` in the store, from where publish() makes them current.
/// Errors   spec_error for a file that does not fit; nothing is to be published then.
void write_first_values(const net& train, std::uint64_t seed,
                        const std::vector<std::filesystem::path>& weights, std::uint64_t version,
                        parameter_store& store);

}  // namespace poseidon
