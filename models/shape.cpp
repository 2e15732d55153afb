#include "models/shape.hpp"

namespace poseidon {

std::int64_t count(const shape& s, std::size_t from, std::size_t to) {
  std::int64_t product = 1;
  for (auto axis = from; axis < to; ++axis) product *= s.at(axis);
  return product;
}

std::int64_t count(const shape& s) {
  return count(s, 0, s.size());
}

std::optional<std::int64_t> checked_count(const shape& s) {
  std::int64_t product = 1;
  for (const auto extent : s)
    if (extent < 0 || __builtin_mul_overflow(product, extent, &product)) return std::nullopt;
  return product;
}

std::string to_string(const shape& s) {
  if (s.empty()) return "scalar";
  std::string text;
  for (const auto extent : s) {
    if (!text.empty()) text += 'x';
    text += std::to_string(extent);
  }
  return text;
}

}  // namespace poseidon
