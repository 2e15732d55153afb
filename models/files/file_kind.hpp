// models/files/file_kind.hpp - what stands at a path that should be a file: a device would be read for ever, a FIFO waited for.
#pragma once
#include <filesystem>
#include <string>

namespace poseidon {

/// "a folder", "a device", "a FIFO", "a socket"; empty for a file, for what is not there, and for what may not be looked at.
[[nodiscard]] std::string kind_if_no_file(const std::filesystem::path& path);

}  // namespace poseidon
