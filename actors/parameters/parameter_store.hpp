// actors/parameters/parameter_store.hpp
//
// The parameters of one node, in host memory, shared by its replicas, its test nets and its shard: a ring of
// copies of each, version v in copy v modulo their number. Fresh chunks land in the copy of their version, straight
// from the socket or from the shard's solver rule, and publish() makes a version current when all its chunks are in.
// So kernels never see half an update.
//
// At staleness s there are s + 2 copies. Version v is overwritten when version v + s + 2 begins to land. That one
// rests on every worker's gradient of clock v + s + 1, of passes that had version v + 1 or a later one of all
// parameters and are over. So by then everybody has v + 1 of everything: no link still sends v, no kernel reads it, here or
// elsewhere, and it is not the newest version that is whole, which a node writes when it loses a peer.
//
// A worker that is alone needs one copy: a parameter is updated when the last backward pass that reads it
// is over and before the next forward pass begins.
//
// Threads: at() is written by link receivers and the shard, each chunk of a version by one of them;
// publish() is called by the parameter's gradient_push; kernels read view() from streams, or with staleness what
// pass_versions shows them; the shard says applied(), link receivers ask for it.
#pragma once
#include "models/device/device.hpp"
#include "models/files/snapshot.hpp"
#include "models/net/net.hpp"
#include "models/plan/partition.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace poseidon {

class parameter_store {
 public:
  /// `workers`: number of nodes in the cluster. `memory`: device::host_memory(); empty: ordinary memory.
  parameter_store(const std::vector<net_parameter>& parameters, partition cut, std::size_t workers,
                  std::uint64_t staleness = 0,
                  std::shared_ptr<std::pmr::memory_resource> memory = {});

  [[nodiscard]] const partition& cut() const { return cut_; }

  /// The place of a version of a chunk: where it is, or where it is to land. Valid until version + s + 2 lands.
  [[nodiscard]] std::span<float> at(std::size_t chunk, std::uint64_t version);
  /// The same for all chunks of a parameter, which lie one after the other.
  [[nodiscard]] std::span<float> values(std::size_t parameter, std::uint64_t version);
  [[nodiscard]] std::span<const float> values(std::size_t parameter, std::uint64_t version) const;

  /// All chunks of `version` of `parameter` are in: it is current now.
  void publish(std::size_t parameter, std::uint64_t version);

  /// What kernels read at staleness 0: the current version.
  [[nodiscard]] const parameter_values& view(std::size_t parameter) const {
    return *views_[parameter];
  }
  [[nodiscard]] std::span<const float> current(std::size_t parameter) const;
  [[nodiscard]] std::uint64_t version(std::size_t parameter) const;
  [[nodiscard]] std::size_t parameters() const { return views_.size(); }

  /// How many updates this node's shard has made to a chunk of its own. Set before anybody hears of the
  /// update, so a peer that speaks of a later one is wrong.
  void set_applied(std::size_t chunk, std::uint64_t version);
  [[nodiscard]] std::uint64_t applied(std::size_t chunk) const;

  /// From now on `there` has the values of what it holds, as soon as it has updated them; here then is what was before.
  void leave_to(std::shared_ptr<device_updates> there) { there_ = std::move(there); }
  /// Brings the current versions home and lets the device go.
  void come_home();

  /// Copies of all parameters at `version`, whether current or, with several workers, up to s + 1 behind; those
  /// that no update changes have one version for good.
  /// Errors   std::runtime_error naming the parameter whose version is none of these.
  [[nodiscard]] parameter_arrays copy(std::uint64_t version) const;

 private:
  partition cut_;
  std::shared_ptr<std::pmr::memory_resource> memory_;  // outlives the copies
  std::vector<std::vector<host_values>>
      copies_;  // by version modulo their number, then by parameter
  std::vector<std::unique_ptr<parameter_values>> views_;
  std::vector<std::atomic<std::uint64_t>> applied_;  // by chunk
  std::vector<std::string> names_;
  std::vector<bool> updated_;  // by parameter
  std::shared_ptr<device_updates> there_;
};

}  // namespace poseidon
