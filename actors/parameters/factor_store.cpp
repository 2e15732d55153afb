#include "actors/parameters/factor_store.hpp"

#include <algorithm>

namespace poseidon {

factor_store::factor_store(const factor_shape& pass, const factor_rows& rows, clock_id first,
                           std::uint64_t staleness,
                           std::shared_ptr<std::pmr::memory_resource> memory)
    : memory_(std::move(memory)), shape_(pass), sent_(value(first)) {
  std::size_t next = 0;
  for (const auto& of_worker : rows) {
    auto& begins = begins_.emplace_back();
    for (const auto r : of_worker) {
      begins.push_back(next);
      next += r;
    }
    begins.push_back(next);
  }
  const auto all = of_all();
  auto* const where = memory_ ? memory_.get() : std::pmr::get_default_resource();
  for (std::uint64_t c = 0; c < 2 * staleness + 2; ++c)
    ring_.push_back(
        {host_values(all.u_values(), where), host_values(all.values() - all.u_values(), where)});
}

factor_shape factor_store::of_node(worker_id worker) const {
  const auto& begins = begins_.at(worker);
  auto node = shape_;
  node.rows = begins.back() - begins.front();
  return node;
}

factor_shape factor_store::of_all() const {
  auto all = shape_;
  all.rows = begins_.back().back();
  return all;
}

factor_spans factor_store::rows_of(clock_id clock, std::size_t first, std::size_t rows) {
  auto& c = ring_[value(clock) % ring_.size()];
  return {std::span(c.u).subspan(first * shape_.outputs, rows * shape_.outputs),
          std::span(c.v).subspan(first * shape_.inputs, rows * shape_.inputs)};
}

factor_spans factor_store::pass(clock_id clock, worker_id worker, std::size_t index) {
  const auto& begins = begins_.at(worker);
  return rows_of(clock, begins.at(index), begins.at(index + 1) - begins.at(index));
}

std::span<float> factor_store::piece(clock_id clock, worker_id worker, std::size_t rows,
                                     std::size_t first) {
  auto sent = shape_;
  sent.rows = rows;
  const auto [u, v] = rows_of(clock, begins_.at(worker).front(), rows);
  const auto values = factor_piece(sent, first);
  return first < u.size() ? u.subspan(first, values) : v.subspan(first - u.size(), values);
}

void factor_store::clear_behind(clock_id clock, worker_id worker, std::size_t rows) {
  const auto& begins = begins_.at(worker);
  const auto first = begins.front() + rows;
  const auto [u, v] = rows_of(clock, first, begins.back() - first);
  std::fill(u.begin(), u.end(), 0.0f);
  std::fill(v.begin(), v.end(), 0.0f);
}

void factor_store::fill(clock_id clock, worker_id self, std::span<const float> u,
                        std::span<const float> v) {
  const auto rows = u.size() / shape_.outputs;
  const auto to = rows_of(clock, begins_.at(self).front(), rows);
  std::copy(u.begin(), u.end(), to.u.begin());
  std::copy(v.begin(), v.end(), to.v.begin());
  clear_behind(clock, self, rows);
  ring_[value(clock) % ring_.size()].filled = rows;
}

std::size_t factor_store::rows_of_node(clock_id clock, worker_id self) const {
  return ring_[value(clock) % ring_.size()].filled.value_or(of_node(self).rows);
}

factor_spans factor_store::all(clock_id clock) {
  return rows_of(clock, 0, begins_.back().back());
}

}  // namespace poseidon
