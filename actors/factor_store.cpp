#include "actors/factor_store.hpp"

#include <algorithm>

namespace poseidon {

factor_store::factor_store(const factor_shape& pass, std::size_t passes, std::size_t workers,
                           clock_id first, std::uint64_t staleness)
    : pass_(pass), node_(pass), workers_(workers), ring_(2 * staleness + 2), sent_(value(first)) {
  node_.rows *= passes;
  const auto all = of_all();
  for (auto& c : ring_) {
    c.u.resize(all.u_values());
    c.v.resize(all.values() - all.u_values());
  }
}

factor_shape factor_store::of_all() const {
  auto all = node_;
  all.rows *= workers_;
  return all;
}

factor_spans factor_store::rows_of(clock_id clock, std::size_t first, std::size_t rows) {
  auto& c = ring_[value(clock) % ring_.size()];
  return {std::span(c.u).subspan(first * node_.outputs, rows * node_.outputs),
          std::span(c.v).subspan(first * node_.inputs, rows * node_.inputs)};
}

factor_spans factor_store::pass(clock_id clock, worker_id worker, std::size_t index) {
  return rows_of(clock, value(worker) * node_.rows + index * pass_.rows, pass_.rows);
}

std::span<float> factor_store::piece(clock_id clock, worker_id worker, std::size_t rows,
                                     std::size_t first) {
  auto sent = node_;
  sent.rows = rows;
  const auto [u, v] = rows_of(clock, value(worker) * node_.rows, rows);
  const auto values = factor_piece(sent, first);
  return first < u.size() ? u.subspan(first, values) : v.subspan(first - u.size(), values);
}

void factor_store::clear_behind(clock_id clock, worker_id worker, std::size_t rows) {
  const auto [u, v] = rows_of(clock, value(worker) * node_.rows + rows, node_.rows - rows);
  std::fill(u.begin(), u.end(), 0.0f);
  std::fill(v.begin(), v.end(), 0.0f);
}

factor_spans factor_store::all(clock_id clock) {
  return rows_of(clock, 0, workers_ * node_.rows);
}

}  // namespace poseidon
