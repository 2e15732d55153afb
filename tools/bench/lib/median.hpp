// tools/bench/lib/median.hpp - what benchmarks say of several readings.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

/// -1 for an empty list.
inline double median(std::vector<double> v) {
  if (v.empty()) return -1;
  const auto middle = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
  std::nth_element(v.begin(), middle, v.end());
  return *middle;
}

/// The median of how far each is off the median.
inline double median_deviation(const std::vector<double>& v) {
  std::vector<double> off;
  for (const double x : v) off.push_back(std::abs(x - median(v)));
  return median(off);
}
