// apps/terminal/json_event.hpp - what --json writes: an object a line, {"event":"test","time":"...",...}.
#pragma once
#include "models/json.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace poseidon::app {

/// A json_object whose texts may come from anywhere: bytes that are not UTF-8 become U+FFFD.
class json_event {
 public:
  /// With the time now, UTC: "2026-03-01T07:58:03.120Z".
  explicit json_event(std::string_view name);
  /// An object within another: without name and time.
  json_event() = default;

  json_event& text(std::string_view key, std::string_view value);
  json_event& number(std::string_view key, double value);  ///< null for infinity and NaN
  json_event& count(std::string_view key, std::uint64_t value);
  json_event& null(std::string_view key);
  json_event& texts(std::string_view key, const std::vector<std::string>& values);
  json_event& object(std::string_view key, const json_event& value);
  json_event& json(std::string_view key, const json_value& value);  ///< on one line

  json_event& add(const json_event& more);  ///< appends the fields of `more`

  [[nodiscard]] std::string line() const { return fields_.text(); }

 private:
  template <class T>
  json_event& put(std::string_view key, const T& value);
  json_object fields_;
};

/// "07:58:03.120", UTC.
[[nodiscard]] std::string time_of_day();

}  // namespace poseidon::app
