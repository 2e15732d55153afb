#include "models/device/memory_plan.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace poseidon {

namespace {

constexpr std::size_t line = 16;  // floats in a cache line
constexpr std::size_t bits = 64;

void put(std::uint64_t* set, std::size_t i) {
  set[i / bits] |= std::uint64_t{1} << (i % bits);
}

}  // namespace

event_order::event_order(const net& n)
    : layers_(n.layers.size()),
      words_((2 * layers_ + bits - 1) / bits),
      after_(2 * layers_ * words_) {
  // For each layer the layers that take its tops. Forward events in net order and backward ones against it are one legal
  // order, so going through it from its end, the successors of an event are known before the event itself.
  std::vector<std::vector<std::size_t>> consumers(layers_), producers(layers_);
  for (std::size_t l = 0; l < layers_; ++l)
    for (const auto bottom : n.layers[l].bottoms)
      if (const auto from = producer(n, bottom, l)) {
        consumers[*from].push_back(l);
        producers[l].push_back(*from);
      }
  const auto follows = [this](net_event a, net_event b) {
    auto* set = after_.data() + index(a) * words_;
    const auto* more = after_.data() + index(b) * words_;
    put(set, index(b));
    for (std::size_t w = 0; w < words_; ++w) set[w] |= more[w];
  };
  for (std::size_t l = 0; l < layers_; ++l)
    for (const auto p : producers[l]) follows({l, true}, {p, true});
  for (std::size_t l = layers_; l-- > 0;) {
    follows({l, false}, {l, true});
    for (const auto c : consumers[l]) follows({l, false}, {c, false});
  }
}

std::size_t event_order::index(net_event e) const {
  return 2 * e.layer + (e.backward ? 1 : 0);
}

std::size_t event_order::turn(net_event e) const {
  return e.backward ? 2 * layers_ - 1 - e.layer : e.layer;
}

bool event_order::before(net_event a, net_event b) const {
  const auto i = index(b);
  return (after_[index(a) * words_ + i / bits] >> (i % bits) & 1) != 0;
}

/// Tells whether one buffer is over before another begins.
class buffer_planner {
 public:
  buffer_planner(const event_order& order, std::span<const planned_buffer> buffers)
      : order_(order), buffers_(buffers), spans_(buffers.size()) {
    for (std::size_t b = 0; b < buffers.size(); ++b)
      for (const auto& e : buffers[b].uses) {
        spans_[b].first = std::min(spans_[b].first, order.turn(e));
        spans_[b].last = std::max(spans_[b].last, order.turn(e));
      }
  }

  memory_plan plan() {
    memory_plan out;
    out.offsets.resize(buffers_.size());
    std::vector<std::size_t> by_size(buffers_.size());
    std::iota(by_size.begin(), by_size.end(), std::size_t{0});
    std::stable_sort(by_size.begin(), by_size.end(), [this](std::size_t a, std::size_t b) {
      return buffers_[a].floats > buffers_[b].floats;
    });
    std::vector<std::size_t> placed;  // by offset
    for (const auto b : by_size) {
      if (buffers_[b].uses.empty()) continue;
      std::size_t at = 0;
      for (const auto other : placed) {
        if (out.offsets[other] >= at + size(b)) break;
        if (!disjoint(b, other)) at = std::max(at, out.offsets[other] + size(other));
      }
      out.offsets[b] = at;
      out.floats = std::max(out.floats, at + size(b));
      placed.insert(std::upper_bound(placed.begin(), placed.end(), at,
                                     [&](std::size_t offset, std::size_t other) {
                                       return offset < out.offsets[other];
                                     }),
                    b);
    }
    out.compared = compared_;
    return out;
  }

 private:
  [[nodiscard]] std::size_t size(std::size_t b) const {
    return (buffers_[b].floats + line - 1) / line * line;
  }
  /// In one legal order, which rules out most pairs: that of event_order::turn.
  struct turns {
    std::size_t first = std::numeric_limits<std::size_t>::max(), last = 0;
  };
  [[nodiscard]] bool over_before(std::size_t a, std::size_t b) const {
    ++compared_;
    if (spans_[a].last >= spans_[b].first) return false;
    compared_ += buffers_[a].uses.size() * buffers_[b].uses.size();
    return std::all_of(buffers_[a].uses.begin(), buffers_[a].uses.end(), [&](net_event before) {
      return std::all_of(buffers_[b].uses.begin(), buffers_[b].uses.end(),
                         [&](net_event after) { return order_.before(before, after); });
    });
  }
  [[nodiscard]] bool disjoint(std::size_t a, std::size_t b) const {
    return over_before(a, b) || over_before(b, a);
  }

  const event_order& order_;
  std::span<const planned_buffer> buffers_;
  std::vector<turns> spans_;  // by buffer
  mutable std::size_t compared_ = 0;
};

memory_plan plan_memory(const event_order& order, std::span<const planned_buffer> buffers) {
  return buffer_planner(order, buffers).plan();
}

}  // namespace poseidon
