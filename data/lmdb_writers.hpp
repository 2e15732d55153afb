// data/lmdb_writers.hpp - which processes of this machine have an LMDB open.
#pragma once
#include <filesystem>
#include <string>

namespace poseidon {

/// "process 123 (python3)", or several; empty: none that is known. `data`: data.mdb, or the file of an LMDB without a folder.
///
/// By the locks that liblmdb has on the lock file, as the kernel lists them. The lock file is not opened: closing it would release
/// the locks of an LMDB that this process has open through liblmdb.
[[nodiscard]] std::string processes_with(const std::filesystem::path& data);

}  // namespace poseidon
