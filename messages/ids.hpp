// messages/ids.hpp - the numbers by which actors speak of layers, chunks, clocks and each other.
#pragma once
#include <cstdint>
#include <string>

namespace poseidon {

enum class layer_id : std::uint32_t {};      ///< place in net::layers
enum class parameter_id : std::uint32_t {};  ///< place in net::parameters
enum class chunk_id : std::uint32_t {};      ///< place in partition::chunks, the same on every node
/// A node as a contributor to a clock: 0 is the one that listens, the others follow in joining order.
enum class worker_id : std::uint32_t {};
enum class replica_id : std::uint32_t {};  ///< one copy of the net within a node
enum class clock_id : std::uint64_t {};    ///< an iteration; the first is the solver state's `iter`
/// How many updates a parameter has seen: version c is what clock c computes with at staleness 0.
enum class version_id : std::uint64_t {};

template <class Id>
[[nodiscard]] constexpr auto value(Id id) {
  return static_cast<std::underlying_type_t<Id>>(id);
}

}  // namespace poseidon
