// models/solver/solver_checks.hpp - what a solver's fields may be, apart from its nets.
#pragma once
#include "models/caffe.hpp"
#include "models/spec/text_format.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace poseidon {

/// A solver while it is resolved: its message, and the places of its fields if they come from a file.
struct solver_source {
  const ::caffe::SolverParameter& spec;
  const field_lines* lines = nullptr;
  std::string file;
  std::filesystem::path folder;

  [[nodiscard]] spec_position at(const char* field, int index = -1) const {
    return {file, lines == nullptr ? 0 : line_of(*lines, spec, field, index)};
  }
};

/// Errors   spec_error unless `holds`.
void require(bool holds, const spec_position& where, const std::string& text);

/// Rule, learning rates and counts.
/// Errors   spec_error with file and line.
void check_fields(const solver_source& s);

/// What is valid in Caffe, too, but hardly meant: a line for each, with file and line.
[[nodiscard]] std::vector<std::string> warnings_of(const solver_source& s);

}  // namespace poseidon
