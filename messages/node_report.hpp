// messages/node_report.hpp
//
// What a node has done since its last report: the payload of a `report` frame (wire.capnp, Report), and inside a
// process the way from actors/telemetry/activity.hpp, which measures, to actors/telemetry/cluster_view.hpp, which shows.
// A name is sent once; from then on its place in the order of sending stands for it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace poseidon {

inline constexpr std::size_t max_report_bytes = 4u << 20;  ///< packed
inline constexpr std::size_t max_report_spans = 4096;      ///< the newest; the others are counted

struct node_report {
  struct actor {
    std::uint32_t name = 0, type = 0;  ///< places in the names
  };
  struct renaming {
    std::uint32_t actor = 0, name = 0;
  };
  struct edge {
    std::uint32_t from = 0, to = 0, message = 0;  ///< places in the actors, and in the names
  };
  struct handled {
    std::uint32_t actor = 0;
    std::uint64_t messages = 0;
  };
  struct count {
    std::uint32_t edge = 0;
    std::uint64_t messages = 0, bytes = 0;
  };
  struct span {
    std::uint32_t lane = 0, name = 0, phase = 0;
    std::int32_t chunk = -1;
    std::int64_t begin_ns = 0, end_ns = 0;
    std::uint64_t clock = 0, bytes = 0;
  };
  struct link {
    std::uint32_t peer = 0;
    std::uint64_t bytes_out = 0, bytes_in = 0, frames_out = 0, frames_in = 0;
  };

  std::int64_t sent_ns = 0;  ///< of the writer's clock, like all times here but the next
  std::int64_t asked_ns = 0, heard_ns = 0;  ///< the newest watch: by its writer's clock, by ours
  std::uint32_t replicas = 0;
  std::uint32_t first_name = 0, first_actor = 0, first_edge = 0, first_lane = 0;
  std::vector<std::string> names;
  std::vector<actor> actors;
  std::vector<edge> edges;
  std::vector<std::uint32_t> lanes;  ///< places in the names
  std::vector<std::uint32_t> ended;  ///< places of actors that have terminated
  /// Links of other names have taken these places of links that had ended. What is counted as sent to such an actor, and handled by it, begins anew.
  std::vector<renaming> renamed;
  /// An actor that stands here and not in `ended` lives. Where it had ended, another one of its name has taken its place.
  std::vector<handled> handled_by;
  std::vector<count> counts;
  std::vector<span> spans;
  std::uint64_t spans_left_out = 0;
  std::vector<link> links;
};

/// Returns  the bytes of a report frame. Errors  std::length_error beyond max_report_bytes.
[[nodiscard]] std::shared_ptr<const std::vector<std::byte>> encode_report(const node_report& r);

/// It is not compared with earlier reports: cluster_view does that.
/// Errors   bad_frame (messages/wire/codec.hpp) for anything that encode_report would not have written.
[[nodiscard]] node_report decode_report(std::span<const std::byte> bytes);

}  // namespace poseidon
