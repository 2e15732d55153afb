// actors/run/net_outputs.hpp - the values that a net's passes give: losses, accuracies and other small outputs.
#pragma once
#include "actors/core/progress.hpp"
#include "models/device/device.hpp"
#include "models/net/net.hpp"

#include <cstddef>
#include <vector>

namespace poseidon {

/// The outputs among the tops of one layer: `layer` produces them, `first` is the place of their first value.
struct layer_outputs {
  std::size_t layer = 0;
  std::size_t first = 0;
  std::vector<std::size_t> blobs;
  std::vector<bool> summed;  ///< by blob: too long to print, but a loss: its sum is one value
};

struct net_outputs {
  std::vector<output_value> values;
  std::vector<layer_outputs> readers;  ///< by layer
};

/// `of_batches`: only those that are one value for a whole batch. Other outputs have values of single samples, and so
/// differ in number from node to node where shares are uneven.
[[nodiscard]] net_outputs list_outputs(const net& n, bool of_batches = false);

/// The values of one layer's outputs after a forward pass of `copy`.
[[nodiscard]] std::vector<float> read_outputs(const net& n, const replica& copy,
                                              const layer_outputs& reader);
/// The values of one layer's outputs from those of reader.blobs.
[[nodiscard]] std::vector<float> make_outputs(const layer_outputs& reader,
                                              const std::vector<std::vector<float>>& values);

}  // namespace poseidon
