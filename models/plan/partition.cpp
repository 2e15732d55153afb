#include "models/plan/partition.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace poseidon {

namespace {

constexpr std::size_t smallest = 4096;  // values: with fewer the headers outweigh them

/// Values per chunk: four chunks per shard if the net is small.
std::size_t chunk_values(std::size_t values, std::size_t shards, double scale) {
  const auto largest = std::max(
      smallest,
      static_cast<std::size_t>(scale * static_cast<double>(max_chunk_bytes / sizeof(float))));
  if (shards == 1) return largest;
  return std::clamp(values / (4 * shards), smallest, largest);
}

/// Equal pieces on multiples of a cache line, so that two owners never write to one line.
void cut(std::size_t parameter, std::size_t values, std::size_t at_most, std::size_t shards,
         std::vector<chunk>& chunks) {
  constexpr std::size_t line = 64 / sizeof(float);
  auto pieces = (values + at_most - 1) / at_most;
  // The same number for each shard: all nodes send a layer at the same time, and the link of a single owner would carry it alone.
  if (values >= smallest * shards) pieces = (pieces + shards - 1) / shards * shards;
  auto piece = (values + pieces - 1) / pieces;
  piece = std::min(at_most, (piece + line - 1) / line * line);
  for (std::size_t offset = 0; offset < values; offset += piece)
    chunks.push_back({parameter, offset, std::min(piece, values - offset), 0});
}

}  // namespace

bool on_factors(const partition& cut, std::size_t parameter) {
  const auto& chunks = cut.by_parameter[parameter];
  return !chunks.empty() && cut.chunks[chunks.front()].owner == every_worker;
}

void set_formats(partition& cut, const parameter_formats& formats) {
  for (auto& c : cut.chunks) c.format = format_of(formats, c.parameter);
}

partition make_partition(const net& n, std::size_t shards, const parameter_routes& routes,
                         double scale) {
  return make_partition(n.parameters, shards, routes, scale);
}

partition make_partition(const std::vector<net_parameter>& parameters, std::size_t shards,
                         const parameter_routes& routes, double scale) {
  if (shards == 0) throw std::invalid_argument("a partition needs at least one shard, got 0");
  const auto values = [&](std::size_t p) {
    return static_cast<std::size_t>(count(parameters[p].shape));
  };
  std::size_t total = 0;
  for (std::size_t p = 0; p < parameters.size(); ++p)
    if (!on_factors(routes, p)) total += values(p);

  partition result;
  result.by_parameter.resize(parameters.size());
  result.by_owner.resize(shards);
  for (std::size_t p = 0; p < parameters.size(); ++p)
    if (values(p) > 0)
      cut(p, values(p),
          on_factors(routes, p) ? chunk_values(0, 1, scale) : chunk_values(total, shards, scale),
          on_factors(routes, p) ? 1 : shards, result.chunks);

  std::vector<std::size_t> by_size(result.chunks.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(), [&](std::size_t a, std::size_t b) {
    return result.chunks[a].count > result.chunks[b].count;
  });
  std::vector<std::size_t> load(shards, 0);
  for (const auto id : by_size) {
    if (on_factors(routes, result.chunks[id].parameter)) {
      result.chunks[id].owner = every_worker;
      continue;
    }
    const auto least = std::min_element(load.begin(), load.end());
    result.chunks[id].owner = static_cast<std::size_t>(least - load.begin());
    *least += result.chunks[id].count;
  }
  for (std::size_t id = 0; id < result.chunks.size(); ++id) {
    result.by_parameter[result.chunks[id].parameter].push_back(id);
    if (result.chunks[id].owner != every_worker)
      result.by_owner[result.chunks[id].owner].push_back(id);
  }
  return result;
}

}  // namespace poseidon
