// apps/terminal/run_lines.hpp - training on two lines of a terminal:
//
//    iter  1259/10000  12.5%  |#####                                    |  left 27m05s
//    loss 2.033  accuracy 0.525  695 images/s  net 248/244 MB/s  hidden 68%
#pragma once
#include "apps/terminal/run_meter.hpp"
#include "apps/terminal/text.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace poseidon::app {

struct run_state {
  std::uint64_t done = 0, total = 0;   ///< iterations
  std::optional<double> left_s;        ///< without tests
  std::optional<double> tests_left_s;  ///< shown where there is room
  std::optional<double> waiting_s;     ///< shown instead of the time left
  std::optional<double> loss;
  std::vector<std::pair<std::string, double>> outputs;
  std::optional<double> images_s;
  std::optional<run_meter::traffic> net;
  std::optional<double> hidden;
};

/// Leaves out what does not fit: first the bar; on the second line whole facts, never half a number.
[[nodiscard]] std::vector<styled_line> run_lines(const run_state& s, std::size_t columns);

}  // namespace poseidon::app
