// data/source_path.hpp - the folders from which a net's relative source names start.
#pragma once
#include "data/source.hpp"

#include <filesystem>
#include <string>

namespace poseidon {

[[nodiscard]] std::filesystem::path locate(const std::string& name, const source_options& options);

/// For a missing file: the places where its relative name was looked for. Otherwise nothing.
[[nodiscard]] std::string where_it_starts(const std::string& name, const source_options& options);

}  // namespace poseidon
