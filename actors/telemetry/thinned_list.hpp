// actors/telemetry/thinned_list.hpp - the curve of a run of any length, in bounded memory, which readers copy at a glance.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace poseidon {

/// Keeps at most about `most` items. When there are more, it drops every second one and from then on keeps fewer of the
/// new ones, so the curve keeps its shape. The newest item is always kept.
template <class T>
class thinned_list {
  struct item {
    std::uint64_t number = 0;  // counts all pushed items
    std::uint64_t rank = 0;
    std::shared_ptr<const T> value;
  };
  /// Slots are written once, in order. A copy knows how many there were, and reads those while others are written.
  using chunk = std::array<item, 256>;

 public:
  explicit thinned_list(std::size_t most) : most_(most) {}

  /// The items of one moment, for one reader. The items themselves are shared, not copied.
  class copy {
   public:
    /// f(item) for each kept item of those pushed after the first `seen`, oldest first.
    template <class F>
    void for_each_from(std::uint64_t seen, F f) const {
      const auto first = std::partition_point(parts_.begin(), parts_.end(), [&](const part& p) {
        return p.items[p.size - 1].number < seen;
      });
      for (auto p = first; p != parts_.end(); ++p)
        for (std::size_t i = 0; i < p->size; ++i)
          if (p->items[i].number >= seen) f(*p->items[i].value);
      for (const auto& i : newest_)
        if (i.number >= seen) f(*i.value);
    }
    /// How many items had ever been pushed. A reader that has read all passes this to for_each_from() next time.
    [[nodiscard]] std::uint64_t seen() const { return seen_; }

   private:
    friend thinned_list;
    struct part {
      std::shared_ptr<const item[]> items;
      std::size_t size = 0;
    };
    std::vector<part> parts_;
    std::vector<item> newest_;
    std::uint64_t seen_ = 0;
  };
  [[nodiscard]] copy now() const {
    copy c;
    c.parts_.reserve(chunks_.size());
    for (std::size_t k = 0; k < chunks_.size(); ++k)
      c.parts_.push_back({{chunks_[k], chunks_[k]->data()}, std::min(kept_ - k * full, full)});
    c.newest_ = newest_;
    c.seen_ = seen_;
    return c;
  }

  /// `rank` decides what is dropped: all items whose rank is not a multiple of a power of two, which grows. It must
  /// not fall. Items of one rank are kept or dropped together.
  void push(std::uint64_t rank, T value) {
    if (!newest_.empty() && newest_.back().rank != rank) {
      for (auto& i : std::exchange(newest_, {}))
        if (i.rank % step_ == 0) keep(std::move(i));
    }
    newest_.push_back({seen_++, rank, std::make_shared<const T>(std::move(value))});
    if (size() > most_) thin();
  }
  void at_most(std::size_t most) { most_ = most; }

  [[nodiscard]] std::uint64_t seen() const { return seen_; }  ///< how many items were ever pushed
  [[nodiscard]] std::size_t size() const { return kept_ + newest_.size(); }
  [[nodiscard]] const T* newest() const {
    return newest_.empty() ? nullptr : newest_.back().value.get();
  }

 private:
  static constexpr std::size_t full = std::tuple_size_v<chunk>;

  void keep(item i) {
    if (kept_ % full == 0) chunks_.push_back(std::make_shared<chunk>());
    (*chunks_.back())[kept_++ % full] = std::move(i);
  }

  /// Into new chunks: readers may still look at the old ones.
  void thin() {
    step_ *= 2;
    const auto before = std::exchange(chunks_, {});
    const auto count = std::exchange(kept_, 0);
    for (std::size_t i = 0; i < count; ++i)
      if (const auto& old = (*before[i / full])[i % full]; old.rank % step_ == 0) keep(old);
  }

  std::size_t most_, kept_ = 0;
  std::uint64_t seen_ = 0, step_ = 1;
  std::vector<std::shared_ptr<chunk>> chunks_;  // all but the last are full
  std::vector<item> newest_;  // of one rank: a later one decides whether they stay
};

}  // namespace poseidon
