// actors/parameters/parameter_store.hpp
//
// The parameters of one node, in host memory, shared by its replicas, its test nets and its shard: a ring of
// copies of each, version v in copy v modulo their number. Fresh chunks land in the copy of their version, straight
// from the socket or from the shard's solver rule, and publish() makes a version current when all its chunks have landed.
// So kernels never see half an update.
//
// At staleness s there are s + 2 copies. Version v is overwritten when version v + s + 2 begins to land. That version
// includes every worker's gradient of clock v + s + 1, which left when that worker had version v + 1 or a later one of all
// parameters: its passes have read them, and the gradient of a side branch waits for that (whole_gate.hpp). So by then every
// node has v + 1 of all parameters: no link still sends v, no kernel on any node reads it, and it is not the newest whole
// version, which a node writes when it loses a peer.
//
// A single-worker run needs one copy: a parameter is updated when the last backward pass that reads it
// has finished and before the next forward pass begins.
//
// Threads: link receivers and the shard write to at(), each chunk of a version by one of them;
// the parameter's gradient_push calls publish(); kernels read view() in streams, or with staleness the values of
// pass_versions; the shard calls set_applied(), link receivers call applied().
#pragma once
#include "models/device/device.hpp"
#include "models/files/snapshot.hpp"
#include "models/indexed.hpp"
#include "models/net/net.hpp"
#include "models/plan/partition.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace poseidon {

/// Thrown by parameter_store::copy.
struct no_such_version : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class parameter_store {
 public:
  /// `workers`: number of nodes in the cluster. `keeps_former`: the version before the newest stays in a single-worker run,
  /// too. `memory`: device::host_memory(); empty: ordinary memory.
  parameter_store(std::span<const net_parameter> parameters, partition cut, std::size_t workers,
                  std::uint64_t staleness = 0,
                  std::shared_ptr<std::pmr::memory_resource> memory = {},
                  bool keeps_former = false);
  /// The parameters of `before`, cut otherwise; their values stay where they are.
  parameter_store(const parameter_store& before, partition cut);

  [[nodiscard]] const partition& cut() const { return cut_; }
  /// Cuts the parameters otherwise. Views, values and versions stay. While no actor uses the store.
  void cut_again(partition cut);
  /// Versions of a parameter that there is room for.
  [[nodiscard]] std::size_t copies() const { return copies_->size(); }
  /// As many as a run of so many workers needs.
  [[nodiscard]] static std::size_t copies_for(std::size_t workers, std::uint64_t staleness) {
    return workers > 1 ? staleness + 2 : 1;
  }

  /// The place of a version of a chunk, whether it has landed or not. Valid until version + s + 2 lands.
  [[nodiscard]] std::span<float> at(chunk_id chunk, std::uint64_t version);
  /// The place of a version of a parameter: all its chunks, one after the other.
  [[nodiscard]] std::span<float> values(parameter_id parameter, std::uint64_t version);
  [[nodiscard]] std::span<const float> values(parameter_id parameter, std::uint64_t version) const;

  /// All chunks of `version` of `parameter` have landed: it becomes the current version.
  void publish(parameter_id parameter, std::uint64_t version);

  /// The current version, which kernels read at staleness 0.
  [[nodiscard]] const parameter_values& view(parameter_id parameter) const {
    return *views_[parameter];
  }
  [[nodiscard]] std::span<const float> current(parameter_id parameter) const;
  /// Makes this version of all parameters the current one again. Frozen parameters have only one. While no actor uses the store.
  /// Errors   logic_bug with both versions: it is none of those that there is room for.
  void go_back(std::uint64_t version);
  [[nodiscard]] std::uint64_t version(parameter_id parameter) const;
  /// A version has been published; before that, version() is 0.
  [[nodiscard]] bool has_values(parameter_id parameter) const {
    return published_[parameter].load(std::memory_order_acquire);
  }
  [[nodiscard]] id_range<parameter_id> parameters() const { return views_.ids(); }

  /// Where a version is the mean gradient of the clock before: whether nobody had one, so that there are no values. Set before publish().
  void set_nothing(parameter_id parameter, std::uint64_t version, bool nothing);
  [[nodiscard]] bool is_nothing(parameter_id parameter, std::uint64_t version) const;

  /// The version that this node's shard has reached with a chunk of its own. Set before any message about that
  /// version, so a peer that speaks of a later one is wrong.
  void set_applied(chunk_id chunk, std::uint64_t version);
  [[nodiscard]] std::uint64_t applied(chunk_id chunk) const;

  /// This node's checkpointer collects the solver state of `version`. Set before it asks the other shards, so a peer that
  /// sends another state, or one that nobody asked for, is wrong.
  void set_gathering(std::optional<std::uint64_t> version);
  [[nodiscard]] std::optional<std::uint64_t> gathering() const;

  /// From now on `there` has the newest values of the parameters that it holds; the copies on the host are older.
  void leave_to(std::shared_ptr<device_updates> there) { there_ = std::move(there); }
  /// Copies the current versions to the host and releases the device.
  void come_home();

  /// Copies of all parameters at `version`: the current one or, with several workers, up to s + 1 before it.
  /// Frozen parameters have only one version.
  /// Errors   no_such_version naming the parameter whose version is none of these.
  [[nodiscard]] parameter_arrays copy(std::uint64_t version) const;

 private:
  partition cut_;
  std::shared_ptr<std::pmr::memory_resource> memory_;          // outlives the copies
  using ring = std::vector<by_id<parameter_id, host_values>>;  // by version modulo its size
  std::shared_ptr<ring> copies_;
  by_id<parameter_id, std::unique_ptr<parameter_values>> views_;
  by_id<parameter_id, std::atomic<bool>> published_;
  by_id<chunk_id, std::atomic<std::uint64_t>> applied_;
  static constexpr std::uint64_t no_version = ~std::uint64_t{0};
  by_id<parameter_id, std::atomic<std::uint64_t>> nothing_;  // the newest version without values
  std::atomic<std::uint64_t> gathering_{no_version};
  by_id<parameter_id, std::string> names_;
  by_id<parameter_id, bool> updated_;
  std::shared_ptr<device_updates> there_;
};

}  // namespace poseidon
