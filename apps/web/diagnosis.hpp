// apps/web/diagnosis.hpp
//
// Who waits for whom, from what a cluster_view knows: the stall doctor. A worker stands still when no kernel of its has
// ended for longer than is usual in this run; then it waits for a batch, or for the update of a layer whose gradient it
// has handed over. Which node holds that update up, the others' reports tell. Pure but for stall_doctor, which says a
// new verdict once in the log. Where nobody shows the run (--web) nothing is recorded, and there is no verdict.
#pragma once
#include "actors/telemetry/cluster_view.hpp"
#include "models/json.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace poseidon {

struct stall_verdict {
  std::uint32_t worker = 0;  ///< who stands still
  std::uint64_t clock = 0;   ///< of which clock the update is; of data: the newest that has begun
  std::string layer;  ///< whose update or batch is missing; the first of them in forward order
  std::string phase;  ///< "update" or "data"
  std::string route;  ///< of an update
  std::optional<std::uint32_t>
      peer;  ///< for whom it waits; none: for itself (data), or nobody can be named
  std::int64_t silent_ns = 0;   ///< so long that peer has not been heard of; 0: it is heard
  bool peer_is_behind = false;  ///< that peer has not handed over its own part
  std::uint64_t bytes = 0;      ///< given to the link between the two and not written to its socket
  std::int64_t since_ns = 0;    ///< since when it stands still, in this node's time
};

/// A worker whose kernels take over 1.5 times the median, over the last seconds. Clocks of which a thousand do not fill
/// three seconds are too short to tell.
struct straggler_verdict {
  std::uint32_t worker = 0;
  double ms = 0, median_ms = 0;  ///< of kernels, per clock and replica; the median of all workers
};

struct diagnosis {
  std::optional<stall_verdict> stall;
  std::vector<straggler_verdict> stragglers;
};

constexpr std::int64_t stall_patience_ns = 500'000'000;

/// `now` in this node's time. A worker is judged after `patience_ns` without a kernel, or three of its usual clocks where
/// those are longer, and when all others have reported since it stands, or are silent.
[[nodiscard]] diagnosis diagnose(const cluster_view::state& s, std::int64_t now,
                                 std::int64_t patience_ns = stall_patience_ns);

/// One line for people.
[[nodiscard]] std::string to_string(const stall_verdict& v, std::int64_t now);
[[nodiscard]] std::string to_string(const straggler_verdict& v);

/// {"text":[..],"stall":{..},"stragglers":[{..}]}; "stall" only where there is one.
[[nodiscard]] json_object diagnosis_json(const diagnosis& d, std::int64_t now);

/// Says in the log what is new. One thread.
class stall_doctor {
 public:
  void look(cluster_view& view, std::int64_t now);

 private:
  /// The same again within a minute is nothing new.
  bool is_new(const std::string& verdict, std::int64_t now);
  std::map<std::string, std::int64_t> said_;  // verdict, when it last held
};

}  // namespace poseidon
