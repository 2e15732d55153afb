// apps/graph/output.hpp - writes an actor graph in the format that the file's name asks for.
#pragma once
#include "actors/actor_graph.hpp"

#include <filesystem>

namespace poseidon::app {

/// .dot, .json, .svg (by Graphviz's dot; where it is missing, DOT beside the target and a hint on standard
/// error); "-" is DOT on standard output.
/// Errors   spec_error for another suffix or a folder that cannot be written; runtime_error if dot fails.
void write_graph(const actor_graph& g, const std::filesystem::path& to);

}  // namespace poseidon::app
