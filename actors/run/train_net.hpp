// actors/run/train_net.hpp
//
// Which train net a node computes: the user's net, or that net with the node's part of a batch. For those who need its shapes
// alone, and for compile_run, which makes replicas of it.
#pragma once
#include "actors/run/run_definition.hpp"
#include "data/source.hpp"
#include "models/net/net.hpp"
#include "models/net/net_builder.hpp"

#include <cstdint>
#include <memory>

namespace poseidon {

/// How this node opens the data layers of a phase.
[[nodiscard]] source_options options_for(const run_definition& run, const node_spec& node,
                                         ::caffe::Phase phase,
                                         std::shared_ptr<opened_images> opened);

/// A net for one of `split_batch` replicas, which divide its batch evenly.
[[nodiscard]] net build(const net_file& file, const net_state& state, const source_options& sources,
                        std::int64_t split_batch);

/// The train net with `samples` of the `of` samples of a batch.
[[nodiscard]] net build_part(const run_definition& run, const source_options& sources,
                             std::uint64_t samples, std::uint64_t of);

struct train_net {
  net part;                 ///< with the samples of this node in one pass
  std::uint64_t batch = 0;  ///< of the net, as its file says
  node_shares shares;       ///< as weighed_shares() has them
};

/// The train net as one replica would have it, with this node's share of the batch. Opens sources for their shapes alone.
/// Errors   spec_error, as compile_run.
[[nodiscard]] train_net resolve_train_net(const run_definition& run, const node_spec& node);

}  // namespace poseidon
