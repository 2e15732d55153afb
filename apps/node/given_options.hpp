// apps/node/given_options.hpp - which options of the table were given, and what the table says of them together.
#pragma once
#include "apps/node/option_table.hpp"

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace poseidon::app {

class given_options {
 public:
  /// Of a program or verb that has read its arguments. It may have a part of the table.
  explicit given_options(const CLI::App& app);

  /// Whether a condition of option_rule holds.
  [[nodiscard]] bool holds(std::string_view condition) const;
  [[nodiscard]] node_role role() const;

  /// Errors   spec_error: an option that does not belong to a node of this role.
  void require_role() const;
  /// Errors   spec_error: options that exclude each other, or lack another one.
  void require_rules() const;
  /// A line about options that have no effect.
  [[nodiscard]] std::vector<std::string> without_effect() const;

 private:
  /// The options of a condition as the user has written them.
  [[nodiscard]] std::string as_given(std::string_view conditions) const;
  [[nodiscard]] std::vector<const option_row*> used_as(option_use use) const;
  void refuse_to_joiner() const;
  void refuse_to_witness() const;

  std::map<std::string, std::string, std::less<>> texts_;  ///< by the row's name
};

}  // namespace poseidon::app
