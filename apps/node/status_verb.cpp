// apps/node/status_verb.cpp - poseidon-node status: how a run goes, asked from outside.
#include "apps/node/options.hpp"
#include "apps/node/verbs.hpp"
#include "apps/web/client.hpp"

#include <CLI/CLI.hpp>

#include <cstdio>

namespace poseidon::app {

int status_verb(int argc, char** argv) {
  CLI::App app("Says how far a run is, how its nodes are, and who waits for whom.",
               "poseidon-node status");
  std::string at = default_page;
  std::filesystem::path token_file;
  app.add_option(
      "--attach", at,
      std::string("HOST:PORT of the page of a node, its --web; ") + default_page + " unless given");
  app.add_option("--web-token-file", token_file,
                 "file whose first line the node's page wants to know");
  app.footer(
      "Only the first node knows of all others. Exit codes: 0 it answers, 1 it does not, 2 wrong "
      "use.");
  if (!parsed(app, argc, argv)) return 0;
  const auto token =
      token_file.empty() ? std::string() : read_token("--web-token-file", token_file);
  std::fputs(web::fetch(parse_host_port(at), "/api/status", token).c_str(), stdout);
  return 0;
}

}  // namespace poseidon::app
