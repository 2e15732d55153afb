#include "models/device/memory_plan.hpp"

#include <algorithm>
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

bool event_order::before(net_event a, net_event b) const {
  const auto i = index(b);
  return (after_[index(a) * words_ + i / bits] >> (i % bits) & 1) != 0;
}

/// The sets by which one buffer is told to be over before another begins.
class buffer_planner {
 public:
  buffer_planner(const event_order& order, std::span<const planned_buffer> buffers)
      : order_(order),
        buffers_(buffers),
        uses_(buffers.size() * order.words_),
        after_(buffers.size() * order.words_) {
    for (std::size_t b = 0; b < buffers.size(); ++b) {
      auto* after = after_.data() + b * order.words_;
      std::fill_n(after, order.words_, ~std::uint64_t{0});
      for (const auto& e : buffers[b].uses) {
        put(uses_.data() + b * order.words_, order.index(e));
        const auto* then = order.after_.data() + order.index(e) * order.words_;
        for (std::size_t w = 0; w < order.words_; ++w) after[w] &= then[w];
      }
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
    return out;
  }

 private:
  [[nodiscard]] std::size_t size(std::size_t b) const {
    return (buffers_[b].floats + line - 1) / line * line;
  }
  [[nodiscard]] bool over_before(std::size_t a, std::size_t b) const {
    const auto words = order_.words_;
    for (std::size_t w = 0; w < words; ++w)
      if ((uses_[b * words + w] & ~after_[a * words + w]) != 0) return false;
    return true;
  }
  [[nodiscard]] bool disjoint(std::size_t a, std::size_t b) const {
    return over_before(a, b) || over_before(b, a);
  }

  const event_order& order_;
  std::span<const planned_buffer> buffers_;
  std::vector<std::uint64_t> uses_, after_;
};

memory_plan plan_memory(const event_order& order, std::span<const planned_buffer> buffers) {
  return buffer_planner(order, buffers).plan();
}

}  // namespace poseidon
