// apps/terminal/json_event.hpp - what --json writes: an object a line, {"event":"test","time":"...",...}.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace poseidon::app {

class json_event {
 public:
  /// With the time now, UTC: "2026-03-01T07:58:03.120Z".
  explicit json_event(std::string_view name);
  /// An object within another: without name and time.
  json_event() = default;

  /// Bytes that are no UTF-8: U+FFFD.
  json_event& text(std::string_view key, std::string_view value);
  json_event& number(std::string_view key, double value);  ///< null for what is no number
  json_event& count(std::string_view key, std::uint64_t value);
  json_event& null(std::string_view key);
  json_event& texts(std::string_view key, const std::vector<std::string>& values);
  json_event& object(std::string_view key, const json_event& value);
  json_event& json(std::string_view key, std::string_view value);  ///< which is JSON, on one line

  json_event& add(const json_event& more);  ///< its fields, behind those that are here

  [[nodiscard]] std::string line() const { return "{" + fields_ + "}"; }

 private:
  json_event& put(std::string_view key, std::string_view value);
  std::string fields_;
};

/// "07:58:03.120", UTC.
[[nodiscard]] std::string time_of_day();

}  // namespace poseidon::app
