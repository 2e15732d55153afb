// apps/node/command_again.hpp - the command that started this node, for messages that say how to go on.
#pragma once
#include <CLI/CLI.hpp>

#include <string>

namespace poseidon::app {

/// "poseidon-node --solver s.prototxt --nodes 2", as a shell takes it, without the files that a run begins with: what follows
/// may be --weights or --snapshot.
[[nodiscard]] std::string command_again(const CLI::App& app, int argc, const char* const* argv);

}  // namespace poseidon::app
