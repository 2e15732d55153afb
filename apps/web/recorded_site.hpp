// apps/web/recorded_site.hpp - the page of a finished run, from its trace file (poseidon-node --trace) or from what it has left
// beside its snapshots.
#pragma once
#include "apps/web/server.hpp"

#include <filesystem>
#include <memory>

namespace poseidon::web {

/// `run`: a trace file, or a folder with snapshots.
/// Errors   std::invalid_argument: no such file, or not one of ours; as server.
[[nodiscard]] std::unique_ptr<server> serve_recording(const host_port& at,
                                                      const std::filesystem::path& run);

}  // namespace poseidon::web
