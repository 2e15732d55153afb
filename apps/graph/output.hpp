// apps/graph/output.hpp - writes an actor graph in the format that the file's name asks for.
#pragma once
#include <filesystem>
#include <functional>
#include <string>

namespace poseidon::app {

/// A graph as text; the one that is asked for is made.
struct graph_texts {
  std::function<std::string()> dot, json;
};

/// .dot, .json, .svg (by Graphviz's dot; where it is missing, DOT beside the target and a hint on standard
/// error); "-" is DOT on standard output.
/// Errors   spec_error for another suffix or a folder that cannot be written; runtime_error if dot fails.
void write_graph(const graph_texts& g, const std::filesystem::path& to);

}  // namespace poseidon::app
