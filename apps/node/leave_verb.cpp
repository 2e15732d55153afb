// apps/node/leave_verb.cpp - poseidon-node leave: asks a node to leave its run, which goes on without it.
#include "apps/cli.hpp"
#include "apps/node/options.hpp"
#include "apps/node/verbs.hpp"
#include "apps/run_app.hpp"
#include "apps/terminal/reporter.hpp"
#include "apps/tls_options.hpp"
#include "apps/web/token.hpp"
#include "messages/wire/handshake.hpp"

#include <CLI/CLI.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace poseidon::app {

namespace {

constexpr std::chrono::seconds patience{5};

}  // namespace

int leave_verb(int argc, char** argv) {
  command_line app(
      "Asks a node to leave: it trains up to an iteration that all nodes agree on, gives its "
      "solver "
      "state to the others, and ends with exit code 0. They go on without it.",
      "poseidon-node leave");
  std::string at;
  std::filesystem::path token_file;
  app.add_option("--at", at, "HOST:PORT where the node that is to leave accepts other nodes")
      ->required();
  app.add_option("--token-file", token_file, "file whose first line is the cluster's secret");
  tls_files tls;
  add_tls_options(app, tls);
  app.footer(
      "poseidon-node members says the addresses of all nodes. Exit codes: 0 it has been "
      "asked, 2 it cannot be reached or wrong use.");
  output_words words;
  app.add_flag("--json", words.json, "an object for programs instead of text for people");
  if (!parsed(app, argc, argv)) return 0;
  handshake_options options;
  if (!token_file.empty()) options.token = web::read_token("--token-file", token_file);
  options.tls = tls_of_links(tls);
  options.build = POSEIDON_VERSION;
  options.self.wants = link_identity::purpose::ask_to_leave;
  options.self.listen_address = "127.0.0.1:0";  // it listens nowhere
  reporter out(words);
  out.until_end(
      [&] {
        const auto node = dial(parse_host_port(at), options, patience);
        const auto who = "worker " + std::to_string(value(node.peer.seat)) + " at " + at;
        out.result(who + " has been asked to leave; its own lines say when it has left");
        if (words.json)
          out.event(json_event("leave").count("worker", value(node.peer.seat)).text("at", at));
        // The node closes the connection when it has read who asks.
        std::byte last[1];
        iovec into{last, sizeof last};
        (void)node.socket->read_some(std::span(&into, 1), patience);
      },
      exit_code_of);
  return 0;
}

}  // namespace poseidon::app
