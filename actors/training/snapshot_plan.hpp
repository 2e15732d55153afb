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
    of_version_ = {wanted_, best_};
    copied_ = wanted_ = best_ = false;
    ++pending_;
    ++number_;
  }
  /// Of the last order.
  [[nodiscard]] std::uint32_t number() const { return number_; }
  /// Returns  whether it was the last order. An earlier one may be copied when a later one of the same version is asked for.
  [[nodiscard]] bool copied(std::uint32_t number) {
    copied_ = copied_ || number == number_;
    return number == number_;
  }
  void written(std::string error) {
    if (pending_ > 0) --pending_;
    error_ = std::move(error);
  }
  /// Clocks from this one on are trained again. One of a later version is worth nothing, and the one of this version has to be
  /// asked for again where it was not complete. Those that are due by their clocks will be due again.
  void go_back(std::uint64_t version) {
    if (!version_ || *version_ < version || (version_ == version && copied_)) return;
    const bool now = version_ == version;
    version_.reset();
    wanted_ = wanted_ || now || of_version_.regular;
    best_ = best_ || (now && of_version_.best);
  }
  /// This node writes them from now on, because the one that did is lost: one at once, if any are due by their clocks.
  void take_over() { wanted_ = wanted_ || interval_ > 0; }
  /// One is to be written before the next clock.
  [[nodiscard]] bool wanted() const { return wanted_; }
  /// Some are not yet on disk.
  [[nodiscard]] bool pending() const { return pending_ > 0; }
  /// Of the last one that was written; empty: none.
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  std::uint64_t interval_;
  bool wanted_ = false, best_ = false;
  std::optional<std::uint64_t> version_;  // the last one asked for
  files of_version_;                      // what had been wanted of it, whatever its clock
  bool copied_ = false;
  std::uint32_t number_ = 0;
  std::size_t pending_ = 0;
  std::string error_;
};

}  // namespace poseidon
