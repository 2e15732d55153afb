// models/indexed.hpp - a vector that is indexed by an id and by no other number.
#pragma once
#include "models/ids.hpp"

#include <cassert>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <utility>
#include <vector>

namespace poseidon {

/// The ids 0 to size - 1, in order: for (const auto id : ids).
template <class Id>
class id_range {
 public:
  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Id;
    using difference_type = std::ptrdiff_t;
    using pointer = const Id*;
    using reference = Id;

    constexpr iterator() = default;
    constexpr explicit iterator(std::size_t place) : place_(place) {}
    constexpr Id operator*() const { return as_id<Id>(place_); }
    constexpr iterator& operator++() {
      ++place_;
      return *this;
    }
    constexpr iterator operator++(int) { return iterator(place_++); }
    friend constexpr bool operator==(iterator, iterator) = default;

   private:
    std::size_t place_ = 0;
  };

  constexpr explicit id_range(std::size_t size) : size_(size) {}
  [[nodiscard]] constexpr iterator begin() const { return iterator(0); }
  [[nodiscard]] constexpr iterator end() const { return iterator(size_); }
  [[nodiscard]] constexpr std::size_t size() const { return size_; }

 private:
  std::size_t size_;
};

template <class Id, class T>
class by_id {
 public:
  using value_type = T;
  using reference = typename std::vector<T>::reference;
  using const_reference = typename std::vector<T>::const_reference;

  by_id() = default;
  by_id(std::initializer_list<T> items) : items_(items) {}
  explicit by_id(std::size_t size) : items_(size) {}
  by_id(std::size_t size, const T& item) : items_(size, item) {}
  explicit by_id(std::vector<T> items) : items_(std::move(items)) {}

  [[nodiscard]] reference operator[](Id id) {
    assert(contains(id));
    return items_[value(id)];
  }
  [[nodiscard]] const_reference operator[](Id id) const {
    assert(contains(id));
    return items_[value(id)];
  }
  /// Errors   std::out_of_range.
  [[nodiscard]] reference at(Id id) { return items_.at(value(id)); }
  [[nodiscard]] const_reference at(Id id) const { return items_.at(value(id)); }

  [[nodiscard]] bool contains(Id id) const { return value(id) < items_.size(); }
  [[nodiscard]] id_range<Id> ids() const { return id_range<Id>(items_.size()); }
  [[nodiscard]] std::size_t size() const { return items_.size(); }
  [[nodiscard]] bool empty() const { return items_.empty(); }
  [[nodiscard]] auto begin() { return items_.begin(); }
  [[nodiscard]] auto end() { return items_.end(); }
  [[nodiscard]] auto begin() const { return items_.begin(); }
  [[nodiscard]] auto end() const { return items_.end(); }
  [[nodiscard]] reference front() { return items_.front(); }
  [[nodiscard]] reference back() { return items_.back(); }
  [[nodiscard]] const_reference front() const { return items_.front(); }
  [[nodiscard]] const_reference back() const { return items_.back(); }

  /// Returns  the id of the new item.
  Id push_back(T item) {
    items_.push_back(std::move(item));
    return as_id<Id>(items_.size() - 1);
  }
  template <class... Arguments>
  reference emplace_back(Arguments&&... arguments) {
    return items_.emplace_back(std::forward<Arguments>(arguments)...);
  }
  void resize(std::size_t size) { items_.resize(size); }
  void assign(std::size_t size, const T& item) { items_.assign(size, item); }
  void clear() { items_.clear(); }

  /// The items as a plain vector, for what counts them without ids.
  [[nodiscard]] const std::vector<T>& items() const { return items_; }

  friend bool operator==(const by_id&, const by_id&) = default;

 private:
  std::vector<T> items_;
};

}  // namespace poseidon
