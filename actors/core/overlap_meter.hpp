// actors/core/overlap_meter.hpp
//
// How much of a node's communication hides behind its computing: the time in which some layer's update was under way
// (from its gradient handed over until its parameters were fresh), and the part of that time in which a stream waited.
// One per node, which begins anew with each view; several threads write, the solver reads.
#pragma once
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace poseidon {

class overlap_meter {
 public:
  explicit overlap_meter(std::size_t streams) : streams_(streams) {}

  /// As another view begins. Updates that were under way when a member was lost have never ended.
  void begin_anew();
  /// A layer's gradient or factors leave; its parameters are fresh. Times are now_ns().
  void began(std::int64_t now);
  void ended(std::int64_t now);
  /// A stream has waited for parameters for `ns`, with no other work to do.
  void stood_still(std::int64_t ns);

  struct totals {
    std::uint64_t communication_ns = 0;
    std::uint64_t exposed_ns = 0;  ///< the streams' mean
  };
  [[nodiscard]] totals read(std::int64_t now) const;

 private:
  std::size_t streams_;
  mutable std::mutex mutex_;
  std::size_t under_way_ = 0;  // layers
  std::int64_t since_ = 0;     // when the first of them began
  std::int64_t communication_ns_ = 0, stood_still_ns_ = 0;
};

}  // namespace poseidon
