// apps/help_text.hpp - what --help prints, the same with every version of CLI11: 2.6 would break the lines of examples.
#pragma once
#include <CLI/CLI.hpp>

#include <string>

namespace poseidon::app {

/// Whether an option takes no value.
[[nodiscard]] bool is_flag(const CLI::Option& option);

/// An option as `--nodes N`, its range and default behind its description; positional arguments once, with the option's
/// name that they also have.
class help_text : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
  /// What follows an option's name: " N"; empty: nothing.
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
};

}  // namespace poseidon::app
