// actors/training/fresh_versions.hpp - which version of the parameters all layers of a node have. Bookkeeping only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>

namespace poseidon {

class fresh_versions {
 public:
  explicit fresh_versions(std::size_t layers) : layers_(layers) {}

  /// A layer has reached `version`. True: it was the last one.
  [[nodiscard]] bool reached(std::uint64_t version) {
    if (++reached_[version] < layers_) return false;
    reached_.erase(version);
    version_ = version;
    return true;
  }
  /// All layers have this version, whatever they have reached before.
  void go_back(std::uint64_t version) {
    reached_.clear();
    version_ = version;
  }
  [[nodiscard]] bool all(std::uint64_t version) const {
    return layers_ == 0 || version_ >= version;
  }

 private:
  std::size_t layers_;
  std::map<std::uint64_t, std::size_t> reached_;  // by version: layers that have reached it
  std::uint64_t version_ = 0;
};

}  // namespace poseidon
