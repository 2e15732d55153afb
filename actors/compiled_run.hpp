// actors/compiled_run.hpp
//
// Everything that a node computes with, before there are actors: nets resolved and compiled into replicas,
// data sources opened, parameters cut and stored. Pure construction; spawn_training() puts actors on it.
#pragma once
#include "actors/parameter_store.hpp"
#include "actors/pinned_parameters.hpp"
#include "actors/reports.hpp"
#include "actors/run_spec.hpp"
#include "data/source.hpp"
#include "models/device.hpp"
#include "models/net.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
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
  /// By replica, then parameter of `graph`: what its kernels read.
  std::vector<std::vector<const parameter_values*>> values;
  std::vector<std::shared_ptr<replica>> replicas;
  std::vector<std::size_t> data_layers;
  std::vector<std::vector<std::shared_ptr<const poseidon::batch>>> fed;  ///< by replica, data layer
  std::vector<std::shared_ptr<const sample_source>> sources;             ///< by data layer
  std::uint64_t batch = 0;  ///< samples per pass and replica
  std::vector<output_value> outputs;
  std::vector<layer_outputs> readers;
  std::vector<std::size_t> to_train;  ///< test nets: parameter -> train parameter
};

struct compiled_run {
  std::uint32_t replicas = 1;
  std::uint32_t micro_batches = 1;
  compiled_net train;
  std::vector<compiled_net> tests;
  std::shared_ptr<parameter_store> store;
  std::vector<std::shared_ptr<pinned_parameters>> pins;  ///< by replica; empty at staleness 0
  std::vector<bool> by_factors;  ///< by layer of the train net: route factor_broadcast
};

/// The values of one layer's outputs after a forward pass of `copy`.
[[nodiscard]] std::vector<float> read_outputs(const compiled_net& net, const replica& copy,
                                              const layer_outputs& reader);
/// The same from the values of reader.blobs.
[[nodiscard]] std::vector<float> make_outputs(const layer_outputs& reader,
                                              const std::vector<std::vector<float>>& values);

/// Opens the data, builds the nets, compiles the replicas.
/// Errors   spec_error for what the user's files say, and for routes that do not fit the net;
///          std::runtime_error for what the device refuses.
[[nodiscard]] std::unique_ptr<compiled_run> compile_run(const run_spec& run, const node_spec& node);

/// The train net as one replica would have it: what routes are chosen by. Opens sources for their shapes alone.
/// Errors   spec_error, as compile_run.
[[nodiscard]] net resolve_train_net(const run_spec& run, const node_spec& node);

/// Replicas for a batch on this many cores: as many as divide it and leave each at least 8 samples.
[[nodiscard]] std::uint32_t default_replicas(std::uint64_t batch, std::uint32_t cores);

/// The first values: fillers, then the layers of each file of `weights` by name, one file after the other.
/// Writes   every parameter's place of `version` in the store, from where publish() makes them current.
/// Errors   spec_error for a file that does not fit; nothing is to be published then.
void write_first_values(const net& train, std::uint64_t seed,
                        const std::vector<std::filesystem::path>& weights, std::uint64_t version,
                        parameter_store& store);

}  // namespace poseidon
