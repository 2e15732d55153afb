#include "apps/terminal/json_event.hpp"

#include "apps/terminal/text.hpp"
#include "models/json.hpp"

#include <chrono>
#include <cstdio>
#include <ctime>

namespace poseidon::app {

namespace {

std::string time_now(const char* format) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const auto s = static_cast<std::time_t>(ms / 1000);
  std::tm utc{};
  gmtime_r(&s, &utc);
  char text[64], out[80];
  std::strftime(text, sizeof text, format, &utc);
  std::snprintf(out, sizeof out, "%s.%03d", text, static_cast<int>(ms % 1000));
  return out;
}

}  // namespace

std::string time_of_day() {
  return time_now("%H:%M:%S");
}

json_event::json_event(std::string_view name) {
  text("event", name);
  text("time", time_now("%Y-%m-%dT%H:%M:%S") + "Z");
}

json_event& json_event::add(const json_event& more) {
  if (!fields_.empty() && !more.fields_.empty()) fields_ += ",";
  fields_ += more.fields_;
  return *this;
}

json_event& json_event::put(std::string_view key, std::string_view value) {
  if (!fields_.empty()) fields_ += ",";
  fields_ += json_text(valid_utf8(key)) + ":";
  fields_ += value;
  return *this;
}

json_event& json_event::text(std::string_view key, std::string_view value) {
  return put(key, json_text(valid_utf8(value)));
}
json_event& json_event::number(std::string_view key, double value) {
  return put(key, json_number(value));
}
json_event& json_event::count(std::string_view key, std::uint64_t value) {
  return put(key, std::to_string(value));
}
json_event& json_event::null(std::string_view key) {
  return put(key, "null");
}
json_event& json_event::texts(std::string_view key, const std::vector<std::string>& values) {
  std::string list = "[";
  json_comma comma;
  for (const auto& v : values) list += comma() + json_text(valid_utf8(v));
  return put(key, list + "]");
}
json_event& json_event::json(std::string_view key, std::string_view value) {
  return put(key, value);
}
json_event& json_event::object(std::string_view key, const json_event& value) {
  return put(key, value.line());
}

}  // namespace poseidon::app
