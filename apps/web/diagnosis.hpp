// apps/web/diagnosis.hpp
//
// Which worker waits for which, from a cluster_view. A worker is stalled when none of its kernels has ended for longer than
// is usual in this run; then it waits for a batch, or for the update of a layer whose gradient it has handed over. The
// reports of the others show which node delays that update. Pure functions, but for stall_doctor, which writes a new
// verdict to the log once. Without --web nothing is recorded, and there is no verdict.
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
  std::uint32_t worker = 0;  ///< the stalled worker
  /// The clock of the missing update; for data the newest clock that has begun.
  std::uint64_t clock = 0;
  std::string layer;  ///< the first layer, in forward order, whose update or batch is missing
  std::string phase;  ///< "update" or "data"
  std::string route;  ///< the layer's route, for an update
  /// The worker for which it waits; none: it waits for its own data, or for an unknown worker.
  std::optional<std::uint32_t> peer;
  std::int64_t silent_ns = 0;   ///< the time since that peer's last report; 0: it reports
  bool peer_is_behind = false;  ///< that peer has not handed over its own part
  std::uint64_t bytes = 0;      ///< given to the link between the two and not written to its socket
  std::int64_t since_ns = 0;    ///< when the stall began, in this node's time
};

/// A worker whose kernels take over 1.5 times the median, over the last seconds. Clocks so short that a thousand of them
/// do not fill three seconds are not compared.
struct straggler_verdict {
  std::uint32_t worker = 0;
  double ms = 0, median_ms = 0;  ///< kernels per clock and replica; the median of all workers
};

struct diagnosis {
  std::optional<stall_verdict> stall;
  std::vector<straggler_verdict> stragglers;
};

constexpr std::int64_t stall_patience_ns = 500'000'000;

/// `now` in this node's time. A worker is judged after `patience_ns` without a kernel, or three of its usual clocks where
/// those are longer, and when each other worker has reported since the stall began, or is silent.
[[nodiscard]] diagnosis diagnose(const cluster_view::state& s, std::int64_t now,
                                 std::int64_t patience_ns = stall_patience_ns);

/// One line for people.
[[nodiscard]] std::string to_string(const stall_verdict& v, std::int64_t now);
[[nodiscard]] std::string to_string(const straggler_verdict& v);

/// {"text":[..],"stall":{..},"stragglers":[{..}]}; "stall" only where there is one.
[[nodiscard]] json_object diagnosis_json(const diagnosis& d, std::int64_t now);

/// Writes new verdicts to the log. One thread.
class stall_doctor {
 public:
  void look(cluster_view& view, std::int64_t now);

 private:
  /// A verdict that held within the last minute is not new.
  bool is_new(const std::string& verdict, std::int64_t now);
  std::map<std::string, std::int64_t> said_;  // verdict, when it last held
};

}  // namespace poseidon
