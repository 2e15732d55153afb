// models/ids.hpp - the numbers of places in a net, a partition and a cluster, one type each.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace poseidon {

enum class layer_id : std::uint32_t {};      ///< place in net::layers
enum class parameter_id : std::uint32_t {};  ///< place in net::parameters
enum class chunk_id : std::uint32_t {};      ///< place in partition::chunks, the same on every node
/// A node as a contributor to a clock: 0 is the one that listens, the others follow in joining order.
enum class worker_id : std::uint32_t {};
/// A node as a member of a run, whatever view: given when it is let in, rising, never given twice. The lowest is the oldest.
enum class seat_id : std::uint32_t {};

template <class Id>
[[nodiscard]] constexpr auto value(Id id) {
  return static_cast<std::underlying_type_t<Id>>(id);
}

/// The id of a place that was counted as a plain number: as_id<layer_id>(3).
template <class Id>
[[nodiscard]] constexpr Id as_id(std::size_t place) {
  return static_cast<Id>(place);
}

}  // namespace poseidon
