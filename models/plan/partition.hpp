// models/plan/partition.hpp - which shard owns which piece of which parameter; every node computes the same partition.
#pragma once
#include "models/device/wire_format.hpp"
#include "models/indexed.hpp"
#include "models/net/net.hpp"
#include "models/plan/routes.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace poseidon {

/// Consecutive values of one parameter that are sent, summed and updated together.
struct chunk {
  parameter_id parameter{};
  std::size_t offset = 0;  ///< in values, not bytes
  std::size_t count = 0;
  worker_id owner{};  ///< whose shard updates it; or every_worker
  /// Format of its gradients and updates on the wire.
  wire_format format = wire_format::float32;
  /// How many other workers have a copy of its solver state (keepers.hpp).
  std::uint32_t keepers = 0;
};

/// Owner of a parameter on a route other than parameter_server: each node updates its own copy, and no shard owns a part of it.
inline constexpr worker_id every_worker{0xfffffffe};

inline constexpr std::size_t max_chunk_bytes = 2u << 20;

struct partition {
  by_id<chunk_id, chunk> chunks;  ///< in parameter order, then offset
  by_id<parameter_id, std::vector<chunk_id>> by_parameter;
  by_id<worker_id, std::vector<chunk_id>> by_owner;  ///< without the chunks of every_worker
  parameter_routes routes = {};                      ///< for which it was made
};

/// Gives every chunk its parameter's format.
void set_formats(partition& cut, const parameter_formats& formats);

/// Whether each node updates its own copy of this parameter.
[[nodiscard]] bool on_every_node(const partition& cut, parameter_id parameter);
/// 0: this parameter is not on a lowrank route.
[[nodiscard]] std::uint32_t rank_of(const partition& cut, parameter_id parameter);

/// All shards own equal parts of each parameter of more than a few thousand values, because all nodes send a layer at the
/// same moment: a layer that one shard owned alone would wait for that node's link.
///
/// Cuts every parameter (frozen ones too: their first values travel) into chunks of at most 2 MiB (smaller for
/// small nets, so that every shard gets a share) and gives them to `shards` owners, largest first to the least
/// loaded; ties by lower index, so that the answer depends on the arguments alone. Parameters that every node
/// updates are cut too, for their first values and their solver state. `scale` shrinks the largest
/// chunk as the parameters have been shrunk (byte_scale.hpp).
[[nodiscard]] partition make_partition(std::span<const net_parameter> parameters,
                                       std::size_t shards, const parameter_routes& routes = {},
                                       double scale = 1);
[[nodiscard]] partition make_partition(const net& n, std::size_t shards,
                                       const parameter_routes& routes = {}, double scale = 1);

}  // namespace poseidon
