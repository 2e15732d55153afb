#include "actors/client/factor_places.hpp"

#include <utility>

namespace poseidon {

namespace {

void copy_own(factor_store& from, worker_id as, factor_store& to, worker_id self, clock_id clock) {
  const auto rows = from.rows_of_node(clock, as);
  const auto shape = from.of_node(as);
  const auto [u, v] = from.pass(clock, as, 0);
  to.fill(clock, self, u.first(rows * shape.outputs), v.first(rows * shape.inputs));
}

}  // namespace

void factor_places::move(factor_stores stores, worker_id self, clock_id clock) {
  const std::lock_guard lock(mutex_);
  for (const auto& [layer, store] : stores)
    if (const auto before = stores_.find(layer); before != stores_.end() && before->second != store)
      copy_own(*before->second, self_, *store, self, clock);
  auto before = std::exchange(stores_, std::move(stores));
  // Where a view is replaced that has not begun, the one before it stays the former one.
  if (!former_) former_ = std::move(before);
  self_ = self;
}

bool factor_places::make_mean_again(parameter_id parameter, clock_id clock,
                                    const host_arithmetic& arithmetic, std::span<float> to) const {
  const std::lock_guard lock(mutex_);
  if (!former_) return false;
  const auto found = former_->find(layer_id{value(parameter)});
  if (found == former_->end()) return false;
  auto& store = *found->second;
  const auto [u, v] = store.all(clock);
  arithmetic.reconstruct_gradient(store.of_all(), u, v, to, {});
  arithmetic.scale(1.0f / static_cast<float>(store.workers()), to, to);
  return true;
}

void factor_places::forget_former() {
  const std::lock_guard lock(mutex_);
  former_.reset();
}

factor_places::place factor_places::of(parameter_id parameter) const {
  const std::lock_guard lock(mutex_);
  const auto found = stores_.find(layer_id{value(parameter)});
  return found == stores_.end() ? place{} : place{found->second, self_};
}

}  // namespace poseidon
