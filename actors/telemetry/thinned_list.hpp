// actors/telemetry/thinned_list.hpp - the curve of a run of any length, in bounded memory.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace poseidon {

/// Keeps at most about `most` items. When there are more, it drops every second one and from then on keeps fewer of the
/// new ones, so the curve keeps its shape. The newest item is always kept.
template <class T>
class thinned_list {
 public:
  explicit thinned_list(std::size_t most) : most_(most) {}

  /// `rank` decides what is dropped: all items whose rank is not a multiple of a power of two, which grows. It must
  /// not fall. Items of one rank are kept or dropped together.
  void push(std::uint64_t rank, T value) {
    const auto is_dropped = [&](const item& i) { return i.rank % step_ != 0 && i.rank < rank; };
    while (!items_.empty() && is_dropped(items_.back())) items_.pop_back();
    items_.push_back({seen_++, rank, std::move(value)});
    if (items_.size() <= most_) return;
    step_ *= 2;
    std::erase_if(items_, is_dropped);
  }

  /// How many items were ever pushed. A reader that has read all keeps this and passes it to for_each_from() next time.
  [[nodiscard]] std::uint64_t seen() const { return seen_; }
  [[nodiscard]] std::size_t size() const { return items_.size(); }
  [[nodiscard]] const T* newest() const { return items_.empty() ? nullptr : &items_.back().value; }

  /// f(item) for each kept item of those pushed after the first `seen`, oldest first.
  template <class F>
  void for_each_from(std::uint64_t seen, F f) const {
    const auto first =
        std::lower_bound(items_.begin(), items_.end(), seen,
                         [](const item& i, std::uint64_t n) { return i.number < n; });
    for (auto i = first; i != items_.end(); ++i) f(i->value);
  }

 private:
  struct item {
    std::uint64_t number = 0;  // counts all pushed items
    std::uint64_t rank = 0;
    T value;
  };
  std::size_t most_;
  std::uint64_t seen_ = 0, step_ = 1;
  std::vector<item> items_;
};

}  // namespace poseidon
