// actors/core/actor_names.hpp
//
// The names that actors bear, made here and read here: "layer conv1 [0]", "test data_source data [1]", "network_link 2",
// "network_link 2 in". A name is unique in its node. People read it in the trace, the page and the graph.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace poseidon {

struct actor_name {
  /// "layer", "stream", "network_link", ...: the class, but for a link's receiving half.
  std::string kind = {};
  /// The layer that it serves; of a stream its work: "compute" or "copy_in".
  std::string layer = {};
  std::int32_t test_net = -1;  ///< -1: the train net
  /// Set for layers, streams, copy_outs and data sources.
  std::optional<std::uint32_t> replica = std::nullopt;
  std::optional<std::uint32_t> worker = std::nullopt;  ///< of links: the other end
  bool receives = false;                               ///< of links: the half that receives

  friend bool operator==(const actor_name&, const actor_name&) = default;
};

[[nodiscard]] std::string to_string(const actor_name& name);
/// The inverse of to_string(). A text that is not such a name becomes the kind.
[[nodiscard]] actor_name parse_actor_name(std::string_view text);

/// "" for the train net (-1), "test " for the first test net, "test 1 " for the second.
[[nodiscard]] std::string name_prefix(std::int32_t test_net);

[[nodiscard]] std::string layer_name(const std::string& layer, std::uint32_t replica,
                                     std::int32_t test_net = -1);
[[nodiscard]] std::string source_name(const std::string& layer, std::uint32_t replica,
                                      std::int32_t test_net = -1);
/// `kind`: "stream compute", "stream copy_in" or "copy_out".
[[nodiscard]] std::string replica_name(std::string_view kind, std::uint32_t replica);
/// `kind`: "gradient_push", "factor_broadcast" or "lowrank_exchange".
[[nodiscard]] std::string exchange_name(std::string_view kind, const std::string& layer);
[[nodiscard]] std::string link_name(std::uint32_t worker);
/// The receiving half of the link `link`.
[[nodiscard]] std::string receiver_name(const std::string& link);

}  // namespace poseidon
