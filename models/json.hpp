// models/json.hpp - the little of JSON that is written by hand.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace poseidon {

/// `text` in quotes. What is no UTF-8 stays as it is: a reader replaces it.
[[nodiscard]] inline std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      out += code;
    } else {
      out += c;
    }
  }
  return out + '"';
}

/// JSON knows neither infinity nor NaN: null.
[[nodiscard]] inline std::string json_number(double v) {
  if (!std::isfinite(v)) return "null";
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", v);
  return text;
}

/// Writes "," before every call but the first.
class json_comma {
 public:
  [[nodiscard]] const char* operator()() {
    const auto* c = first_ ? "" : ",";
    first_ = false;
    return c;
  }

 private:
  bool first_ = true;
};

}  // namespace poseidon
