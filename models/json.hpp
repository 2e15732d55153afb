// models/json.hpp
//
// JSON as this program writes it. An object or array is a value, and text() closes it: no bracket can be missing.
//
//   json_object().put("model", name).put("clocks", json_array::of(3, 4)).text()   // {"model":"LeNet","clocks":[3,4]}
//
// A value that is put may be a text, a bool, an integer, a floating-point number (json_number), an object, an array,
// JSON text (json_value), nullptr, or a std::optional of these; an empty optional is null.
#pragma once
#include <charconv>
#include <concepts>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>

namespace poseidon {

/// `text` in quotes. Bytes that are not UTF-8 stay as they are: a reader replaces them.
[[nodiscard]] std::string json_text(std::string_view text);
/// With nine digits; null for infinity and NaN, which JSON lacks.
[[nodiscard]] std::string json_number(double v);

/// Text that is JSON already.
struct json_value {
  std::string text;
};

class json_object;
class json_array;

namespace detail {

void append_json_text(std::string& out, std::string_view text);

template <class T>
void append_json(std::string& out, const T& v) {
  if constexpr (std::same_as<T, json_object> || std::same_as<T, json_array>) {
    v.append_to(out);
  } else if constexpr (std::same_as<T, json_value>) {
    out += v.text;
  } else if constexpr (std::same_as<T, std::nullptr_t>) {
    out += "null";
  } else if constexpr (std::same_as<T, bool>) {
    out += v ? "true" : "false";
  } else if constexpr (std::integral<T>) {
    char digits[24];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, v).ptr);
  } else if constexpr (std::floating_point<T>) {
    out += json_number(static_cast<double>(v));
  } else if constexpr (requires { v.has_value(); }) {
    if (v)
      append_json(out, *v);
    else
      out += "null";
  } else {
    append_json_text(out, v);
  }
}

}  // namespace detail

class json_object {
 public:
  template <class T>
  json_object& put(std::string_view key, const T& value) {
    detail::append_json(begin(key), value);
    return *this;
  }
  /// Appends the fields of `more`.
  json_object& add(const json_object& more);

  [[nodiscard]] bool empty() const { return fields_.empty(); }
  [[nodiscard]] std::string text() const { return "{" + fields_ + "}"; }
  void append_to(std::string& out) const { ((out += '{') += fields_) += '}'; }

 private:
  std::string& begin(std::string_view key);
  std::string fields_;
};

/// How the items of an array are laid out: all on one line, or each on its own.
enum class json_layout { one_line, lines };

class json_array {
 public:
  explicit json_array(json_layout layout = json_layout::one_line) : layout_(layout) {}
  template <class... T>
  [[nodiscard]] static json_array of(const T&... items) {
    json_array out;
    (out.put(items), ...);
    return out;
  }
  template <class List>
  [[nodiscard]] static json_array from(const List& items) {
    json_array out;
    for (const auto& item : items) out.put(item);
    return out;
  }

  template <class T>
  json_array& put(const T& item) {
    detail::append_json(begin(), item);
    return *this;
  }
  [[nodiscard]] std::string text() const;
  void append_to(std::string& out) const;

 private:
  std::string& begin();
  std::string items_;
  json_layout layout_;
};

/// A large object, given to `write` in pieces: fields, and lists whose items are not kept.
class json_stream {
 public:
  using writer = std::function<void(std::string_view)>;

  explicit json_stream(writer write) : write_(std::move(write)) {}
  template <class T>
  void put(std::string_view key, const T& value) {
    detail::append_json(begin(key), value);
  }
  /// fill(put) calls put(item) for each item; each is on a line of its own.
  template <class Fill>
  void list(std::string_view key, Fill fill) {
    begin(key) += '[';
    const char* separator = "\n";
    fill([&](const auto& item) {
      pending_ += separator;
      separator = ",\n";
      detail::append_json(pending_, item);
      if (pending_.size() >= piece_bytes) write_out();
    });
    pending_ += "\n]";
  }
  /// Closes the object and ends the line. Called once, last.
  void finish();

 private:
  static constexpr std::size_t piece_bytes = 64 * 1024;
  std::string& begin(std::string_view key);
  void write_out();

  writer write_;
  std::string pending_;
  bool has_fields_ = false;
};

}  // namespace poseidon
