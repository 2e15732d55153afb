// apps/web/recorded_site.hpp - the page of a finished run, from its trace file (poseidon-node --trace).
#pragma once
#include "apps/web/server.hpp"

#include <filesystem>
#include <memory>

namespace poseidon::web {

/// Errors   std::invalid_argument: no such file, or not a trace of ours; as server.
[[nodiscard]] std::unique_ptr<server> serve_recording(const host_port& at,
                                                      const std::filesystem::path& trace);

}  // namespace poseidon::web
