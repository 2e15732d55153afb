// models/files/atomic_file.hpp - writes files whole or not at all.
#pragma once
#include <filesystem>
#include <functional>
#include <span>

namespace poseidon {

// Both write beside the target, sync, then rename: a reader sees the old file or the new one, whole.
// Errors   std::runtime_error with path and the system's reason (disk full, permission); nothing is
//          left, and what was there before is unchanged.

/// `fill` writes to the descriptor and returns 0 or an errno.
void write_atomically(const std::filesystem::path& path, const std::function<int(int)>& fill);
void write_atomically(const std::filesystem::path& path, std::span<const char> bytes);

}  // namespace poseidon
