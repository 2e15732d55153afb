// actors/parameter_store.hpp
//
// The parameters of one node, in host memory, shared by its replicas, its test nets and its shard: two buffers
// each. One is current and only read; fresh chunks land in the other, straight from the socket or from the
// shard's solver rule, and publish() swaps the two when all chunks of a version are in. So kernels never see
// half an update, and the version before stays whole until the next one begins to land: by then every worker
// has told its gradient of the version between, so nobody reads the old one and no link still sends it.
//
// A worker that is alone needs one buffer: a parameter is updated when the last backward pass that reads it
// is over and before the next forward pass begins.
//
// Threads: landing() buffers are written by link receivers and the shard, each chunk by one of them;
// publish() is called by the parameter's gradient_push; kernels read view() from streams; the shard says
// applied(), link receivers ask for it.
#pragma once
#include "models/device.hpp"
#include "models/net.hpp"
#include "models/partition.hpp"
#include "models/snapshot.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace poseidon {

class parameter_store {
 public:
  /// `workers`: of the cluster.
  parameter_store(const net& n, partition cut, std::size_t workers);

  [[nodiscard]] const partition& cut() const { return cut_; }

  /// Where the next version of a chunk goes; with one worker, current_chunk itself.
  [[nodiscard]] std::span<float> landing(std::size_t chunk);
  /// The same for all chunks of a parameter, which lie one after the other.
  [[nodiscard]] std::span<float> landing_of(std::size_t parameter);

  /// The landed chunks of `parameter` become its current values, numbered `version`.
  void publish(std::size_t parameter, std::uint64_t version);

  /// What kernels read.
  [[nodiscard]] const parameter_values& view(std::size_t parameter) const {
    return *views_[parameter];
  }
  [[nodiscard]] std::span<const float> current(std::size_t parameter) const;
  [[nodiscard]] std::span<const float> current_chunk(std::size_t chunk) const;
  [[nodiscard]] std::uint64_t version(std::size_t parameter) const;

  /// How many updates this node's shard has made to a chunk of its own. Set before anybody hears of the
  /// update, so a peer that speaks of a later one is wrong.
  void set_applied(std::size_t chunk, std::uint64_t version);
  [[nodiscard]] std::uint64_t applied(std::size_t chunk) const;

  /// Copies of all parameters at `version`, whether current or, with several workers, one behind; those that no
  /// update changes have one version for good.
  /// Errors   std::runtime_error naming the parameter whose version is neither.
  [[nodiscard]] parameter_arrays copy(std::uint64_t version) const;

 private:
  [[nodiscard]] std::size_t other_half(std::size_t parameter) const;

  partition cut_;
  std::vector<std::vector<std::vector<float>>> buffers_;  // one or two halves, then by parameter
  std::vector<std::atomic<std::size_t>> current_;         // which half; swapped by publish()
  std::vector<std::unique_ptr<parameter_values>> views_;
  std::vector<std::atomic<std::uint64_t>> applied_;  // by chunk
  std::vector<std::string> names_;
  std::vector<bool> updated_;  // by parameter
};

}  // namespace poseidon
