// data/source_path.hpp - where the relative names of a net's sources start.
#pragma once
#include "data/source.hpp"

#include <filesystem>
#include <string>

namespace poseidon {

[[nodiscard]] std::filesystem::path locate(const std::string& name, const source_options& options);

/// For a file that is not there: where a relative name was looked for. Else nothing.
[[nodiscard]] std::string where_it_starts(const std::string& name, const source_options& options);

}  // namespace poseidon
