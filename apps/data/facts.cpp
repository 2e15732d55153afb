#include "apps/data/facts.hpp"

#include "models/json.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <cstdio>

namespace poseidon::app {
namespace {

std::string padded(const std::string& text, std::size_t width) {
  return text.size() < width ? text + std::string(width - text.size(), ' ') : text;
}

std::string without_spaces_behind(std::string line) {
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line + "\n";
}

std::string print(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace

fact::fact(const std::string& value) : text(value), json(json_text(value)) {}

fact::fact(double value) : text(print("%.6g", value)), json(json_number(value)) {}

fact::fact(const shape& extents) : fact(to_string(extents)) {}

fact::fact(const std::vector<std::string>& values)
    : text(comma_list(values)), json(json_array::from(values).text()) {}

fact bytes_fact(std::uint64_t bytes) {
  const auto number = std::to_string(bytes);
  const auto value = static_cast<double>(bytes);
  if (bytes < 10'000) return {number + " bytes", number};
  if (bytes < 10'000'000) return {print("%.0f kB", value / 1e3), number};
  if (bytes < 10'000'000'000) return {print("%.0f MB", value / 1e6), number};
  return {print("%.1f GB", value / 1e9), number};
}

void facts::add_table(const std::string& name, std::vector<std::string> columns,
                      std::vector<std::vector<fact>> rows) {
  tables_.push_back({name, std::move(columns), std::move(rows)});
}

std::string facts::text() const {
  std::size_t width = 0;
  for (const auto& [name, value] : facts_) width = std::max(width, name.size());
  std::string out = file_ + ": " + kind_ + "\n";
  for (const auto& [name, value] : facts_)
    out += without_spaces_behind(padded(name, width + 2) + value.text);
  for (const auto& t : tables_) {
    std::vector<std::size_t> widths;
    for (std::size_t c = 0; c < t.columns.size(); ++c) {
      widths.push_back(t.columns[c].size());
      for (const auto& row : t.rows) widths[c] = std::max(widths[c], row[c].text.size());
    }
    const auto line = [&](auto cell) {
      std::string text = "  ";
      for (std::size_t c = 0; c < widths.size(); ++c) text += padded(cell(c), widths[c] + 2);
      return without_spaces_behind(std::move(text));
    };
    out += t.name + ":\n" + line([&](std::size_t c) { return t.columns[c]; });
    for (const auto& row : t.rows) out += line([&](std::size_t c) { return row[c].text; });
  }
  return out;
}

json_event facts::event() const {
  json_event e;
  e.text("kind", kind_);
  for (const auto* some : {&facts_, &fields_})
    for (const auto& [name, value] : *some) e.json(name, {value.json});
  for (const auto& t : tables_) {
    json_array rows;
    for (const auto& row : t.rows) {
      json_event object;
      for (std::size_t c = 0; c < row.size(); ++c) object.json(t.columns[c], {row[c].json});
      rows.put(json_value{object.line()});
    }
    e.json(t.name, {rows.text()});
  }
  return e;
}

}  // namespace poseidon::app
