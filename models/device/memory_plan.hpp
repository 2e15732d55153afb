// models/device/memory_plan.hpp
//
// Buffers of a net may share memory if they are never in use at the same time, whatever the order in which the layers'
// messages arrive. Parallel branches have no fixed order, so a buffer's memory is only reused by buffers whose uses
// come after its last use in every legal order.
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

/// The order that follows from dataflow: a layer's forward comes after its producers', its backward after its
/// own forward and after its consumers' backward. All of a pass comes before all of the next.
class event_order {
 public:
  explicit event_order(const net& n);

  /// Has `a` finished before `b` begins, in every legal order?
  [[nodiscard]] bool before(net_event a, net_event b) const;

 private:
  friend class buffer_planner;
  [[nodiscard]] std::size_t index(net_event e) const;
  /// Its place in one legal order: forward events in net order, then backward ones against it.
  [[nodiscard]] std::size_t turn(net_event e) const;

  std::size_t layers_;
  std::size_t words_;                 // size of one set
  std::vector<std::uint64_t> after_;  // by event: the set of events that come after it
};

/// A buffer with all events that read or write it.
struct planned_buffer {
  std::size_t floats = 0;
  std::vector<net_event> uses;
};

struct memory_plan {
  std::vector<std::size_t> offsets;  ///< by buffer, in floats; multiples of 16 (a cache line)
  std::size_t floats = 0;            ///< size of the whole
  std::size_t compared = 0;  ///< pairs of buffers and of their uses: the work that planning took
};

/// Places buffers, largest first, each at the lowest offset where it meets no other that is in use with it. A
/// buffer without uses gets no memory of its own (offset 0).
[[nodiscard]] memory_plan plan_memory(const event_order& order,
                                      std::span<const planned_buffer> buffers);

}  // namespace poseidon
