// models/device/memory_plan.hpp
//
// Which buffers of a net may lie in the same memory: those that are never in use at the same time, in whatever
// order the layers' messages happen to arrive. Parallel branches have no order of their own, so a buffer is only
// reused by what every legal order puts after its last use.
#pragma once
#include "models/net/net.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace poseidon {

/// One layer's forward or backward in a pass.
struct net_event {
  std::size_t layer = 0;
  bool backward = false;
};

/// The order that dataflow alone enforces: a layer's forward comes after its producers', its backward after its
/// own forward and after its consumers' backward. All of a pass comes before all of the next.
class event_order {
 public:
  explicit event_order(const net& n);

  /// Is `a` over before `b` begins, in every legal order?
  [[nodiscard]] bool before(net_event a, net_event b) const;

 private:
  friend class buffer_planner;
  [[nodiscard]] std::size_t index(net_event e) const;

  std::size_t layers_;
  std::size_t words_;                 // of one set
  std::vector<std::uint64_t> after_;  // by event: the set of events that come after it
};

/// A buffer with everything that reads or writes it.
struct planned_buffer {
  std::size_t floats = 0;
  std::vector<net_event> uses;
};

struct memory_plan {
  std::vector<std::size_t> offsets;  ///< by buffer, in floats; multiples of 16 (a cache line)
  std::size_t floats = 0;            ///< of the whole
};

/// Places buffers, largest first, each at the lowest offset where it meets no other that is in use with it. A
/// buffer without uses gets no memory of its own (offset 0).
[[nodiscard]] memory_plan plan_memory(const event_order& order,
                                      std::span<const planned_buffer> buffers);

}  // namespace poseidon
