// models/spec/spec_kind.hpp - what kind of message a text file is, by its fields: a file's name may say anything.
#pragma once
#include <set>
#include <string>

namespace poseidon {

/// Names of the fields of a text message that are in no braces. The text may have mistakes.
[[nodiscard]] std::set<std::string> outer_fields(const std::string& text);

enum class spec_kind { solver, net, profile, other };
[[nodiscard]] spec_kind kind_of_spec(const std::set<std::string>& outer_fields);

}  // namespace poseidon
