#include "actors/core/actor_names.hpp"

#include <array>
#include <charconv>
#include <span>

namespace poseidon {

namespace {

constexpr std::string_view test_prefix = "test ", receiver_suffix = " in";
constexpr std::string_view link_kind = "network_link";
constexpr std::array<std::string_view, 2> per_replica{"layer", "data_source"};
constexpr std::array<std::string_view, 3> per_node{"gradient_push", "factor_broadcast",
                                                   "lowrank_exchange"};

std::optional<std::uint32_t> parsed_number(std::string_view text) {
  std::uint32_t out = 0;
  const auto* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, out);
  return error == std::errc() && at == end ? std::optional(out) : std::nullopt;
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// "test " or "test 1 " off the front.
std::int32_t take_test_net(std::string_view& text) {
  if (!take_prefix(text, test_prefix)) return -1;
  const auto space = text.find(' ');
  const auto index = parsed_number(text.substr(0, space));
  if (!index || space == std::string_view::npos) return 0;
  text.remove_prefix(space + 1);
  return static_cast<std::int32_t>(*index);
}

/// "layer conv1": kind and layer, if the kind is one of `kinds`.
bool take_layer(std::string_view text, std::span<const std::string_view> kinds, actor_name& out) {
  for (const auto kind : kinds) {
    if (!text.starts_with(kind) || text.size() < kind.size() + 2 || text[kind.size()] != ' ')
      continue;
    out.kind = kind;
    out.layer = text.substr(kind.size() + 1);
    return true;
  }
  return false;
}

/// " [2]" off the end.
std::optional<std::uint32_t> take_replica(std::string_view& text) {
  const auto at = text.rfind(" [");
  if (at == std::string_view::npos || !text.ends_with(']')) return std::nullopt;
  const auto replica = parsed_number(text.substr(at + 2, text.size() - at - 3));
  if (replica) text = text.substr(0, at);
  return replica;
}

}  // namespace

std::string name_prefix(std::int32_t test_net) {
  if (test_net < 0) return "";
  return test_net == 0 ? "test " : "test " + std::to_string(test_net) + " ";
}

std::string to_string(const actor_name& name) {
  auto out = name_prefix(name.test_net) + name.kind;
  if (!name.layer.empty()) out += " " + name.layer;
  if (name.worker) out += " " + std::to_string(*name.worker);
  if (name.replica) out += " [" + std::to_string(*name.replica) + "]";
  return name.receives ? receiver_name(out) : out;
}

actor_name parse_actor_name(std::string_view text) {
  actor_name out;
  auto rest = text;
  if (take_prefix(rest, link_kind) && take_prefix(rest, " ")) {
    out.receives = rest.ends_with(receiver_suffix);
    if (out.receives) rest.remove_suffix(receiver_suffix.size());
    out.worker = parsed_number(rest);
    if (out.worker) {
      out.kind = link_kind;
      return out;
    }
  }
  rest = text;
  out = {};
  out.test_net = take_test_net(rest);
  if (take_layer(rest, per_node, out)) return out;
  out.replica = take_replica(rest);
  if (out.replica && take_layer(rest, per_replica, out)) return out;
  if (const auto space = rest.find(' '); out.replica && out.test_net < 0) {
    out.kind = rest.substr(0, space);
    if (space != std::string_view::npos) out.layer = rest.substr(space + 1);
    return out;
  }
  return {.kind = std::string(text)};
}

std::string layer_name(const std::string& layer, std::uint32_t replica, std::int32_t test_net) {
  return to_string({.kind = "layer", .layer = layer, .test_net = test_net, .replica = replica});
}

std::string source_name(const std::string& layer, std::uint32_t replica, std::int32_t test_net) {
  return to_string(
      {.kind = "data_source", .layer = layer, .test_net = test_net, .replica = replica});
}

std::string replica_name(std::string_view kind, std::uint32_t replica) {
  return to_string({.kind = std::string(kind), .replica = replica});
}

std::string exchange_name(std::string_view kind, const std::string& layer) {
  return to_string({.kind = std::string(kind), .layer = layer});
}

std::string link_name(std::uint32_t worker) {
  return to_string({.kind = std::string(link_kind), .worker = worker});
}

std::string receiver_name(const std::string& link) {
  return link + std::string(receiver_suffix);
}

}  // namespace poseidon
