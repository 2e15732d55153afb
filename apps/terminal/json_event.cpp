#include "apps/terminal/json_event.hpp"

#include "apps/terminal/text.hpp"

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
  fields_.add(more.fields_);
  return *this;
}

template <class T>
json_event& json_event::put(std::string_view key, const T& value) {
  fields_.put(valid_utf8(key), value);
  return *this;
}

json_event& json_event::text(std::string_view key, std::string_view value) {
  return put(key, valid_utf8(value));
}
json_event& json_event::number(std::string_view key, double value) {
  return put(key, value);
}
json_event& json_event::count(std::string_view key, std::uint64_t value) {
  return put(key, value);
}
json_event& json_event::null(std::string_view key) {
  return put(key, nullptr);
}
json_event& json_event::texts(std::string_view key, const std::vector<std::string>& values) {
  json_array list;
  for (const auto& v : values) list.put(valid_utf8(v));
  return put(key, list);
}
json_event& json_event::json(std::string_view key, const json_value& value) {
  return put(key, value);
}
json_event& json_event::object(std::string_view key, const json_event& value) {
  return put(key, value.fields_);
}

}  // namespace poseidon::app
