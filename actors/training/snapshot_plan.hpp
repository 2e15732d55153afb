// actors/training/snapshot_plan.hpp - which snapshots a solver has asked for, and which of them are written. Bookkeeping only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace poseidon {

class snapshot_plan {
 public:
  /// `interval`: in clocks; 0: none.
  explicit snapshot_plan(std::uint64_t interval) : interval_(interval) {}

  /// The user wants one before the next clock.
  void want() { wanted_ = true; }
  /// The model of this clock is the best so far.
  void want_best() { best_ = true; }
  struct files {
    bool regular = false, best = false;
    [[nodiscard]] bool any() const { return regular || best; }
  };
  [[nodiscard]] files due(std::uint64_t clock) const {
    return {wanted_ || (interval_ > 0 && clock % interval_ == 0), best_};
  }
  [[nodiscard]] bool asked(std::uint64_t version) const { return version_ == version; }
  void ask(std::uint64_t version) {
    version_ = version;
    wanted_ = best_ = false;
    ++pending_;
  }
  void written(std::string error) {
    if (pending_ > 0) --pending_;
    error_ = std::move(error);
  }
  /// One of this version or of a later one has to be asked for again.
  void go_back(std::uint64_t version) {
    if (!version_ || *version_ < version) return;
    version_.reset();
    wanted_ = true;
  }
  /// Some are copied and not yet on disk.
  [[nodiscard]] bool pending() const { return pending_ > 0; }
  /// Of the last one that was written; empty: none.
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  std::uint64_t interval_;
  bool wanted_ = false, best_ = false;
  std::optional<std::uint64_t> version_;  // the last one asked for
  std::size_t pending_ = 0;
  std::string error_;
};

}  // namespace poseidon
