// models/net/net_builder.hpp - from a specification to a resolved net: rules, splits, shapes, flags.
#pragma once
#include "models/net/net.hpp"
#include "models/spec/net_file.hpp"

#include <functional>
#include <string>
#include <vector>

namespace poseidon {

/// Caffe's NetState: which include/exclude rules hold.
struct net_state {
  ::caffe::Phase phase = ::caffe::TRAIN;
  int level = 0;
  std::vector<std::string> stages;
};

/// Shapes of the tops of a data layer (batch axis included), which only data/ knows.
/// Input and DummyData state their own shapes and are not asked.
using source_shapes = std::function<std::vector<shape>(const ::caffe::LayerParameter& layer,
                                                       const spec_position& where)>;

struct build_options {
  net_state state;
  source_shapes sources;
  std::int64_t split_batch = 1;  ///< replicas of a node, which share the first axis of sources
  /// Used instead where replicas differ: this replica's samples, and the samples of the whole batch; 0: all of them.
  std::int64_t samples = 0, of_batch = 1;
};

/// Layers after the include/exclude rules, without splits. Order kept.
[[nodiscard]] net_file filter_net(const net_file& file, const net_state& state);

/// Adds Split layers where a blob has several consumers, named as Caffe names them.
[[nodiscard]] net_file insert_splits(const net_file& file);

/// Filters, inserts splits, checks every layer, infers every shape, decides which layers run backward.
/// Errors   spec_error "file:line: layer "x" (Type): ..." with both values and a suggestion.
[[nodiscard]] net build_net(const net_file& file, const build_options& options);

}  // namespace poseidon
