#include "actors/run/net_outputs.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>

namespace poseidon {

namespace {

// Larger unconsumed blobs (a label that nothing reads) are no values to print.
constexpr std::int64_t longest_printed_output = 10;

}  // namespace

net_outputs list_outputs(const net& n, bool of_batches) {
  net_outputs out;
  for (std::size_t l = 0; l < n.layers.size(); ++l) {
    const auto& layer = n.layers[l];
    layer_outputs reader{l, out.values.size(), {}, {}};
    for (std::size_t t = 0; t < layer.tops.size(); ++t) {
      const auto blob = layer.tops[t];
      const auto values = count(n.blobs[blob].shape);
      const auto weight = t < layer.loss_weights.size() ? layer.loss_weights[t] : 0.0f;
      const bool summed = values > longest_printed_output;
      if (std::find(n.outputs.begin(), n.outputs.end(), blob) == n.outputs.end() ||
          producer(n, blob, n.layers.size()) != l || (summed && weight == 0) ||
          (of_batches && !n.blobs[blob].shape.empty()))
        continue;
      reader.blobs.push_back(blob);
      reader.summed.push_back(summed);
      const auto& name = n.blobs[blob].name;
      if (summed || values == 1)
        out.values.push_back({name, weight});
      else
        for (std::int64_t i = 0; i < values; ++i)
          out.values.push_back({name + "[" + std::to_string(i) + "]", weight});
    }
    if (!reader.blobs.empty()) out.readers.push_back(std::move(reader));
  }
  return out;
}

std::vector<float> read_outputs(const net& n, const replica& copy, const layer_outputs& reader) {
  std::vector<std::vector<float>> values;
  for (const auto blob : reader.blobs) {
    auto& of_blob = values.emplace_back(static_cast<std::size_t>(count(n.blobs[blob].shape)));
    copy.read_data(blob, of_blob);
  }
  return make_outputs(reader, values);
}

std::vector<float> make_outputs(const layer_outputs& reader,
                                const std::vector<std::vector<float>>& values) {
  std::vector<float> out;
  for (std::size_t b = 0; b < values.size(); ++b) {
    if (reader.summed[b])
      out.push_back(static_cast<float>(std::accumulate(values[b].begin(), values[b].end(), 0.0)));
    else
      out.insert(out.end(), values[b].begin(), values[b].end());
  }
  return out;
}

}  // namespace poseidon
