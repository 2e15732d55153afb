// data/fail.hpp - the error for a file that cannot be read.
#pragma once
#include <filesystem>
#include <stdexcept>
#include <string>

namespace poseidon {

/// Throws std::runtime_error "PATH: text".
[[noreturn]] inline void fail(const std::filesystem::path& path, const std::string& text) {
  throw std::runtime_error(path.string() + ": " + text);
}

}  // namespace poseidon
