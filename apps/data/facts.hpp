// apps/data/facts.hpp - the results of `info` about a file, as text for people or as JSON.
#pragma once
#include "apps/terminal/json_event.hpp"
#include "models/shape.hpp"

#include <concepts>
#include <string>
#include <utility>
#include <vector>

namespace poseidon::app {

/// One value in both forms.
struct fact {
  std::string text, json;

  fact(const std::string& value);  // NOLINT: facts are made of whatever there is to say
  fact(const char* value) : fact(std::string(value)) {}
  fact(bool value) : text(value ? "yes" : "no"), json(value ? "true" : "false") {}
  fact(std::integral auto value) : text(std::to_string(value)), json(text) {}
  fact(double value);
  fact(const shape& extents);  ///< "1x28x28"
  fact(const std::vector<std::string>& values);
  fact(std::string in_words, std::string in_json)
      : text(std::move(in_words)), json(std::move(in_json)) {}
};

/// Bytes with a unit for people; JSON has the number.
[[nodiscard]] fact bytes_fact(std::uint64_t bytes);

class facts {
 public:
  facts(std::string file, std::string kind) : file_(std::move(file)), kind_(std::move(kind)) {}

  void add(const std::string& name, const fact& value) { facts_.emplace_back(name, value); }
  /// Only in JSON.
  void add_field(const std::string& name, const fact& value) { fields_.emplace_back(name, value); }
  /// Rows have a value for each column.
  void add_table(const std::string& name, std::vector<std::string> columns,
                 std::vector<std::vector<fact>> rows);

  /// "FILE: KIND", then a line for each fact, then the tables.
  [[nodiscard]] std::string text() const;
  /// "kind", then facts and tables by their names; a table is a list of objects.
  [[nodiscard]] json_event event() const;

 private:
  struct table {
    std::string name;
    std::vector<std::string> columns;
    std::vector<std::vector<fact>> rows;
  };
  std::string file_, kind_;
  std::vector<std::pair<std::string, fact>> facts_, fields_;
  std::vector<table> tables_;
};

}  // namespace poseidon::app
