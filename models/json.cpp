#include "models/json.hpp"

#include "models/printable.hpp"

#include <cmath>
#include <cstdio>

namespace poseidon {

void detail::append_json_text(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    const auto bytes = utf8_character(text, at);
    if (bytes != 1) {
      // JSON is UTF-8: what is none is replaced, as a decoder would.
      out += bytes == 0 ? "\\ufffd" : text.substr(at, bytes);
      at += bytes == 0 ? 1 : bytes;
      continue;
    }
    ++at;
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
  out += '"';
}

std::string json_text(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  detail::append_json_text(out, text);
  return out;
}

std::string json_number(double v) {
  if (!std::isfinite(v)) return "null";
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", v);
  return text;
}

json_object& json_object::add(const json_object& more) {
  if (!fields_.empty() && !more.fields_.empty()) fields_ += ',';
  fields_ += more.fields_;
  return *this;
}

std::string& json_object::begin(std::string_view key) {
  if (!fields_.empty()) fields_ += ',';
  detail::append_json_text(fields_, key);
  return fields_ += ':';
}

std::string& json_array::begin() {
  if (!items_.empty()) items_ += ',';
  if (layout_ == json_layout::lines) items_ += '\n';
  return items_;
}

std::string json_array::text() const {
  std::string out;
  append_to(out);
  return out;
}

void json_array::append_to(std::string& out) const {
  out += '[';
  out += items_;
  out += layout_ == json_layout::lines && !items_.empty() ? "\n]" : "]";
}

void json_stream::finish() {
  pending_ += has_fields_ ? "}\n" : "{}\n";
  write_out();
}

std::string& json_stream::begin(std::string_view key) {
  pending_ += has_fields_ ? "," : "{";
  has_fields_ = true;
  detail::append_json_text(pending_, key);
  return pending_ += ':';
}

void json_stream::write_out() {
  write_(pending_);
  pending_.clear();
}

}  // namespace poseidon
