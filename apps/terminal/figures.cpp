#include "apps/terminal/figures.hpp"

#include <algorithm>
#include <cstdio>

namespace poseidon::app {

namespace {

struct scale {
  double of;
  const char* unit;
};

scale scale_of(double bytes) {
  if (bytes >= 999.5e6) return {1e9, "GB"};
  if (bytes >= 999.5e3) return {1e6, "MB"};
  return {1e3, "kB"};
}

}  // namespace

std::string number(double v, const char* format) {
  char text[64];
  std::snprintf(text, sizeof text, format, v);
  return text;
}

std::string rate(double per_s) {
  return number(per_s, per_s >= 1000 ? "%.0f" : "%.3g");
}

std::string duration(double seconds) {
  if (!(seconds < 1e9)) return "ages";  // also NaN
  const auto s = static_cast<long>(std::max(seconds, 0.0) + 0.5);
  char text[64];
  if (s >= 3600)
    std::snprintf(text, sizeof text, "%ldh%02ldm", s / 3600, s / 60 % 60);
  else if (s >= 60)
    std::snprintf(text, sizeof text, "%ldm%02lds", s / 60, s % 60);
  else
    std::snprintf(text, sizeof text, "%lds", s);
  return text;
}

namespace {

/// As rate(), but what is nothing beside the other one is 0: "1.06/0 GB/s", not "1.06/1.3e-05 GB/s".
std::string rate_beside(double per_s) {
  return per_s < 0.0005 ? "0" : rate(per_s);
}

}  // namespace

std::string byte_rates(double out_per_s, double in_per_s) {
  const auto by = scale_of(std::max(out_per_s, in_per_s));
  return rate_beside(out_per_s / by.of) + "/" + rate_beside(in_per_s / by.of) + " " + by.unit +
         "/s";
}

std::string bytes_of(std::uint64_t done, std::uint64_t total) {
  const auto by = scale_of(static_cast<double>(total));
  return number(static_cast<double>(done) / by.of, "%.1f") + " of " +
         number(static_cast<double>(total) / by.of, "%.1f") + " " + by.unit;
}

styled_line bar(double share, std::size_t columns) {
  const auto inside = std::max<std::size_t>(columns, 3) - 2;
  const auto filled =
      static_cast<std::size_t>(static_cast<double>(inside) * std::clamp(share, 0.0, 1.0));
  return {{"|", style::plain},
          {std::string(filled, '#'), style::bar},
          {std::string(inside - filled, ' ') + "|", style::plain}};
}

}  // namespace poseidon::app
