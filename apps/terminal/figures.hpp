// apps/terminal/figures.hpp - figures as people read them, and bars.
#pragma once
#include "apps/terminal/text.hpp"

#include <cstdint>
#include <string>

namespace poseidon::app {

[[nodiscard]] std::string number(double v, const char* format = "%.4g");
/// "4813" from 1000 on, "12.5" below: at least three digits.
[[nodiscard]] std::string rate(double per_s);
/// "27m05s", "3h02m", "40s".
[[nodiscard]] std::string duration(double seconds);
/// "24.8/24.4 MB/s": out and in with the unit of the larger. Powers of 1000, as for the rates of networks.
[[nodiscard]] std::string byte_rates(double out_per_s, double in_per_s);
/// "1.2 of 4.8 GB".
[[nodiscard]] std::string bytes_of(std::uint64_t done, std::uint64_t total);
/// "|#####     |" with the given number of columns, at least 3.
[[nodiscard]] styled_line bar(double share, std::size_t columns);

}  // namespace poseidon::app
