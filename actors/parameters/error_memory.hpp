// actors/parameters/error_memory.hpp
//
// What one node has not sent yet of one layer's gradients, where it sends them by low rank. It belongs to a version: clock c begins with that of
// version c and makes that of c + 1. It outlives the view: a node that stays keeps it, one that joins begins with zeros, and that of a
// lost node is lost with it.
//
// Where nodes may be lost, the others go back to a version that all have as a whole, up to s + 1 before the newest of a layer. So that many former
// ones are kept.
#pragma once
#include "messages/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace poseidon {

class error_memory {
 public:
  /// A view begins with `version`. Where there is no memory of that version, it begins with zeros. `former`: how many versions before the
  /// newest are kept.
  void begin(std::size_t values, std::uint64_t version, std::uint64_t former);

  /// Begins to make the memory of the version after `version`: it holds that of `version` still.
  [[nodiscard]] std::span<float> make_from(std::uint64_t version);
  [[nodiscard]] std::span<float> being_made(std::uint64_t version) { return place(version).values; }
  void made(std::uint64_t version) { place(version).version = version; }
  /// Empty: there is none, or it is not made.
  [[nodiscard]] std::span<const float> at(std::uint64_t version) const;

 private:
  struct copy {
    std::vector<float> values;
    std::optional<std::uint64_t> version = std::nullopt;  // empty: it is being made, or was never
  };
  [[nodiscard]] copy& place(std::uint64_t version) { return ring_[version % ring_.size()]; }

  std::vector<copy> ring_;  // by version modulo its size
};

/// By layer on a lowrank route.
using error_memories = std::map<layer_id, std::shared_ptr<error_memory>>;

}  // namespace poseidon
