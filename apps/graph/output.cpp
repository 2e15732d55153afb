#include "apps/graph/output.hpp"

#include "models/files/atomic_file.hpp"
#include "models/spec/spec_file.hpp"

#include <cerrno>
#include <iostream>
#include <spawn.h>
#include <stdexcept>
#include <sys/wait.h>

extern char** environ;

namespace poseidon::app {

namespace {

/// A path that cannot be written is wrong use of the program.
void write_text(const std::filesystem::path& path, const std::string& text) {
  try {
    write_atomically(path, text);
  } catch (const std::runtime_error& e) {
    throw spec_error(e.what());
  }
}

/// Runs `dot -Tsvg` without a shell. 127: there is no such program.
int run_dot(const std::string& from, const std::string& to) {
  std::string words[] = {"dot", "-Tsvg", from, "-o", to};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(),
                       words[3].data(), words[4].data(), nullptr};
  pid_t child = 0;
  if (posix_spawnp(&child, "dot", nullptr, nullptr, arguments, environ) != 0) return 127;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

void write_svg(const std::string& text, const std::filesystem::path& to) {
  auto dot = to;
  dot.replace_extension(".dot");
  const bool keep = std::filesystem::exists(dot);  // the user's own file: not ours to replace
  if (keep) dot += ".part";
  write_text(dot, text);
  const auto part = to.string() + ".part";
  const int code = run_dot(dot.string(), part);
  if (code == 127) {
    std::filesystem::remove(part);
    std::cerr << "poseidon-graph: Graphviz's program dot is not installed, so " << dot.string()
              << " was written instead of " << to.string()
              << ". Install it (Debian: apt-get install graphviz), then: dot -Tsvg " << dot.string()
              << " -o " << to.string() << "\n";
    return;
  }
  std::filesystem::remove(dot);
  if (code != 0) {
    std::filesystem::remove(part);
    throw std::runtime_error("dot -Tsvg ended with code " + std::to_string(code) + "; " +
                             to.string() + " was not written.");
  }
  std::filesystem::rename(part, to);
}

}  // namespace

void write_graph(const graph_texts& g, const std::filesystem::path& to) {
  const auto suffix = to.extension().string();
  if (to == "-")
    std::cout << g.dot();
  else if (suffix == ".dot")
    write_text(to, g.dot());
  else if (suffix == ".json")
    write_text(to, g.json());
  else if (suffix == ".svg")
    write_svg(g.dot(), to);
  else
    throw spec_error("-o " + to.string() +
                     ": the suffix says the format, and it has to be .dot, .svg or .json.");
}

}  // namespace poseidon::app
