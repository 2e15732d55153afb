#include "models/plan/partition.hpp"

#include <algorithm>
#include <stdexcept>

namespace poseidon {

namespace {

constexpr std::size_t smallest = 4096;  // values: with fewer the headers outweigh them
static_assert(max_chunk_bytes / sizeof(float) % block_values == 0);

/// Values per chunk: four chunks per shard if the net is small.
std::size_t chunk_values(std::size_t values, std::size_t shards, double scale) {
  const auto largest = std::max(
      smallest,
      static_cast<std::size_t>(scale * static_cast<double>(max_chunk_bytes / sizeof(float))));
  if (shards == 1) return largest;
  return std::clamp(values / (4 * shards), smallest, largest);
}

/// Equal pieces, up to a block of int8 and int4, at whose multiples they begin; and so at those of a cache line: two owners never write to
/// one line. Formats change no piece, so that a view's pieces are known without them.
/// A piece has fewer than `at_most` and a block.
void cut(parameter_id parameter, std::size_t values, std::size_t at_most, std::size_t shards,
         by_id<chunk_id, chunk>& chunks) {
  const auto blocks = (values + block_values - 1) / block_values;
  auto pieces = (values + at_most - 1) / at_most;
  // The same number for each shard: all nodes send a layer at the same time, and the link of a single owner would carry it alone.
  if (values >= smallest * shards) pieces = (pieces + shards - 1) / shards * shards;
  const auto begin = [&](std::size_t piece) {
    return std::min(values, blocks * piece / pieces * block_values);
  };
  for (std::size_t i = 0; i < pieces; ++i)
    chunks.push_back({parameter, begin(i), begin(i + 1) - begin(i), {}});
}

}  // namespace

bool on_every_node(const partition& cut, parameter_id parameter) {
  const auto& chunks = cut.by_parameter[parameter];
  return !chunks.empty() && cut.chunks[chunks.front()].owner == every_worker;
}

std::uint32_t rank_of(const partition& cut, parameter_id parameter) {
  return rank_of(route_of(cut.routes, parameter));
}

void set_formats(partition& cut, const parameter_formats& formats) {
  for (auto& c : cut.chunks) c.format = format_of(formats, c.parameter);
}

partition make_partition(const net& n, std::size_t shards, const parameter_routes& routes,
                         double scale) {
  return make_partition(n.parameters, shards, routes, scale);
}

partition make_partition(std::span<const net_parameter> parameters, std::size_t shards,
                         const parameter_routes& routes, double scale) {
  if (shards == 0) throw std::invalid_argument("a partition needs at least one shard, got 0");
  const id_range<parameter_id> ids(parameters.size());
  const auto values = [&](parameter_id p) {
    return static_cast<std::size_t>(count(parameters[value(p)].shape));
  };
  std::size_t total = 0;
  for (const auto p : ids)
    if (!on_every_node(routes, p)) total += values(p);

  partition result;
  result.routes = routes;
  result.by_parameter.resize(parameters.size());
  result.by_owner.resize(shards);
  for (const auto p : ids)
    if (values(p) > 0)
      cut(p, values(p),
          on_every_node(routes, p) ? chunk_values(0, 1, scale) : chunk_values(total, shards, scale),
          on_every_node(routes, p) ? 1 : shards, result.chunks);

  std::vector<chunk_id> by_size(result.chunks.ids().begin(), result.chunks.ids().end());
  std::stable_sort(by_size.begin(), by_size.end(), [&](chunk_id a, chunk_id b) {
    return result.chunks[a].count > result.chunks[b].count;
  });
  std::vector<std::size_t> load(shards, 0);
  for (const auto id : by_size) {
    if (on_every_node(routes, result.chunks[id].parameter)) {
      result.chunks[id].owner = every_worker;
      continue;
    }
    const auto least = std::min_element(load.begin(), load.end());
    result.chunks[id].owner = as_id<worker_id>(static_cast<std::size_t>(least - load.begin()));
    *least += result.chunks[id].count;
  }
  for (const auto id : result.chunks.ids()) {
    const auto& c = result.chunks[id];
    result.by_parameter[c.parameter].push_back(id);
    if (c.owner != every_worker) result.by_owner[c.owner].push_back(id);
  }
  return result;
}

}  // namespace poseidon
