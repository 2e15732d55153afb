// apps/web/run_files.hpp - the files beside a run's snapshots that hold what its page shows: PREFIX_run.json, and
// PREFIX_run_from_N.json of a run that was resumed at iteration N. Their text is that of a trace without spans.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace poseidon::web {

[[nodiscard]] std::filesystem::path run_file(const std::string& prefix, std::uint64_t first_clock);

/// What `poseidon-graph view` shows of a folder: the run whose file was written last, and before it those that it was resumed
/// from, the first one first. A file that was written earlier but begins later belongs to a run that was given up.
/// Errors   std::invalid_argument: the folder has none.
[[nodiscard]] std::vector<std::filesystem::path> newest_run_in(const std::filesystem::path& folder);

}  // namespace poseidon::web
