#include "apps/node/label_check.hpp"

#include "models/net/label_rules.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace poseidon::app {

namespace {

/// A second or two of decoding, and at least so many samples of any source.
constexpr std::uint64_t most_values = 1u << 26, fewest_samples = 256, most_samples = 20000;

/// Where a layer's labels come from.
struct labels_of {
  std::size_t layer = 0;  ///< in the net
  std::size_t source = 0, top = 0;
  label_rules rules;
};

std::optional<label_rules> rules_of(const net& n, const net_layer& layer) {
  if (layer.bottoms.size() < 2) return std::nullopt;
  const auto& scores = n.blobs[layer.bottoms[0]].shape;
  const auto axis_of = [&](std::int64_t axis) {
    return axis < 0 ? axis + static_cast<std::int64_t>(scores.size()) : axis;
  };
  const auto classes = [&](std::int64_t axis) {
    return static_cast<std::size_t>(scores.at(static_cast<std::size_t>(axis_of(axis))));
  };
  if (layer.type == "SoftmaxWithLoss")
    return read_label_rules(layer, classes(layer.spec.softmax_param().axis()), loss_norm::valid);
  if (layer.type == "Accuracy")
    return read_accuracy_rules(layer, classes(layer.spec.accuracy_param().axis()));
  return std::nullopt;
}

/// The data layer's top that a blob is, as it is: Split layers pass it on.
std::optional<std::pair<std::size_t, std::size_t>> origin(const net& n, std::size_t blob,
                                                          std::size_t before) {
  const auto from = producer(n, blob, before);
  if (!from) return std::nullopt;
  const auto& layer = n.layers[*from];
  if (layer.type == "Split") return origin(n, layer.bottoms[0], *from);
  if (!is_source(layer)) return std::nullopt;
  const auto top = std::find(layer.tops.begin(), layer.tops.end(), blob) - layer.tops.begin();
  return std::pair(*from, static_cast<std::size_t>(top));
}

std::vector<labels_of> compared_labels(const compiled_net& n) {
  std::vector<labels_of> out;
  for (std::size_t l = 0; l < n.graph.layers.size(); ++l) {
    const auto rules = rules_of(n.graph, n.graph.layers[l]);
    if (!rules) continue;
    const auto from = origin(n.graph, n.graph.layers[l].bottoms[1], l);
    if (!from) continue;
    const auto at = std::find(n.data_layers.begin(), n.data_layers.end(), from->first);
    if (at == n.data_layers.end()) continue;
    out.push_back({l, static_cast<std::size_t>(at - n.data_layers.begin()), from->second, *rules});
  }
  return out;
}

void check_source(const compiled_net& n, std::size_t s, const std::vector<labels_of>& all) {
  const auto& source = *n.sources[s];
  std::vector<std::vector<float>> values;
  std::uint64_t per_sample = 0;
  for (const auto& shape : source.sample_shapes()) {
    values.emplace_back(static_cast<std::size_t>(count(shape)));
    per_sample += values.back().size();
  }
  std::vector<std::span<float>> tops(values.begin(), values.end());
  const auto most = std::clamp(most_values / std::max<std::uint64_t>(per_sample, 1), fewest_samples,
                               most_samples);
  const auto looked_at = std::min(source.size(), most);
  for (std::uint64_t k = 0; k < looked_at; ++k) {
    const auto sample = k * (source.size() / looked_at);
    source.fill(sample, tops);
    for (const auto& l : all) {
      if (l.source != s) continue;
      const auto& layer = n.graph.layers[l.layer];
      for (const float label : values[l.top])
        if (!l.rules.is_ignored(label) && !l.rules.is_class(label))
          throw spec_error(layer.where,
                           wrong_label(layer.name, layer.type,
                                       static_cast<std::size_t>(l.rules.classes), label) +
                               " It is sample " + std::to_string(sample) + " of layer \"" +
                               n.graph.layers[n.data_layers[s]].name + "\".");
    }
  }
}

}  // namespace

void check_labels(const compiled_net& n) {
  const auto all = compared_labels(n);
  for (std::size_t s = 0; s < n.sources.size(); ++s) {
    const bool compared =
        std::any_of(all.begin(), all.end(), [&](const auto& l) { return l.source == s; });
    if (compared && n.sources[s] && !n.sources[s]->sample_shapes().empty()) check_source(n, s, all);
  }
}

}  // namespace poseidon::app
