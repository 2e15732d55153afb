// apps/node/option_binder.hpp - rows of the option table as options of CLI11, for poseidon-node's verbs.
#pragma once
#include "apps/node/option_table.hpp"

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>

namespace poseidon::app {

/// Takes names, help, heading, value and default from the row.
class option_binder {
 public:
  /// `headings`: the options stand in groups, as those of `train` do; else all together.
  explicit option_binder(CLI::App& app, bool headings = false) : app_(app), headings_(headings) {}

  template <class T>
  CLI::Option* value(std::string_view name, T& to) {
    const auto& row = row_of(name);
    return dress(app_.add_option(row.names, to, row.help), row);
  }
  CLI::Option* flag(std::string_view name, bool& to) {
    const auto& row = row_of(name);
    return dress(app_.add_flag(row.names, to, row.help), row);
  }

 private:
  CLI::Option* dress(CLI::Option* option, const option_row& row) {
    const std::string value = row.value, heading = heading_of(row.group);
    if (heading.empty() || headings_) option->group(heading);
    if (*row.otherwise != '\0') option->default_str(row.otherwise);
    if (value.starts_with('{')) return option->check(CLI::IsMember(choices_of(value)));
    if (value.starts_with('[')) return option->expected(0, 1)->type_name(inside_of(value));
    return value.empty() ? option : option->type_name(value);
  }
  static std::string inside_of(const std::string& text) { return text.substr(1, text.size() - 2); }
  static std::vector<std::string> choices_of(const std::string& text) {
    return CLI::detail::split(inside_of(text), ',');
  }

  CLI::App& app_;
  bool headings_;
};

}  // namespace poseidon::app
