// apps/node/ask_verbs.cpp
//
// Verbs that ask one node for something:
//   poseidon-node leave   it leaves its run, which goes on without it
//   poseidon-node go-on   a node that is paused, because it does not hear enough others, goes on without these
#include "actors/cluster/looking.hpp"
#include "actors/links/farewell.hpp"
#include "apps/cli.hpp"
#include "apps/node/verbs.hpp"
#include "apps/run_app.hpp"
#include "apps/terminal/reporter.hpp"
#include "apps/tls_options.hpp"
#include "apps/web/token.hpp"

#include <CLI/CLI.hpp>

#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

namespace poseidon::app {

namespace {

constexpr std::chrono::seconds patience{5};

struct question {
  const char* verb;
  link_identity::purpose wants;
  const char* description;
  const char* at;      ///< what the option's address is
  const char* event;   ///< of --json
  const char* answer;  ///< "worker 1 at ... " and this
  const char* refuses;
};

/// Errors   spec_error: nobody is there, it is no node, or it refuses this program. In words for whoever gives an address and a token,
/// not for a node that joins.
link_connection reached(const question& q, const std::string& at,
                        const handshake_options& options) {
  const auto verb = std::string(q.verb) + ": ";
  const std::string addresses =
      " poseidon-node members says the addresses of all nodes; a node's own lines say \"listening "
      "on ...\" or \"this node listens on ...\".";
  const std::string token =
      " --token-file names the file whose first line is the cluster's secret.";
  try {
    return dial(parse_host_port(at), options, std::chrono::milliseconds{0});
  } catch (const socket_error& e) {
    if (e.error == ECONNREFUSED)
      throw spec_error(verb + "no node listens at " + at + " (connection refused)." + addresses);
    throw spec_error(verb + "no node at " + at + ": " + e.what() + addresses);
  } catch (const handshake_error& e) {
    switch (e.why) {
      case refusal::wrong_token:
        throw spec_error(verb + "the node at " + at + " has another token." + token);
      case refusal::token_missing:
        throw spec_error(verb +
                         (options.token.empty() ? "the node at " + at + " wants a token."
                                                : "the node at " + at + " has no token.") +
                         token);
      case refusal::not_poseidon:
      case refusal::closed:
      case refusal::silent:
        throw spec_error(verb + "what listens at " + at +
                         " is no node of a run. --at wants the address where a node accepts other "
                         "nodes, not that of its page." +
                         addresses + " (" + e.what() + ")");
      default:
        throw spec_error(verb + e.what());
    }
  }
}

int ask(const question& q, int argc, char** argv) {
  command_line app(q.description, q.verb);
  std::string at;
  std::filesystem::path token_file;
  app.add_option("--at", at, q.at)->required();
  app.add_option("--token-file", token_file, "file whose first line is the cluster's secret");
  tls_files tls;
  add_tls_options(app, tls);
  app.footer(
      "poseidon-node members says the addresses of all nodes. Exit codes: 0 it has been "
      "asked, 2 it cannot be reached, or refuses, or wrong use.");
  output_words words;
  app.add_flag("--json", words.json, "an object for programs instead of text for people");
  if (!parsed(app, argc, argv)) return 0;
  const auto options = asking(
      q.wants, token_file.empty() ? std::string() : web::read_token("--token-file", token_file),
      tls_of_links(tls));
  reporter out(words);
  out.until_end(
      [&] {
        const auto node = reached(q, at, options);
        const auto* const kind =
            node.peer.wants == link_identity::purpose::witness ? "witness" : "worker";
        const auto who = kind + (" " + std::to_string(value(node.peer.seat))) + " at " + at;
        // The node says why it does not, and closes the connection when it has read who asks.
        if (const auto said = hear_farewell(node, patience); said && !said->reason.empty())
          throw spec_error(std::string(q.verb) + ": " + who + " " + q.refuses + ": " +
                           said->reason);
        out.result(who + " " + q.answer);
        if (words.json)
          out.event(json_event(q.event).count(kind, value(node.peer.seat)).text("at", at));
      },
      exit_code_of);
  return 0;
}

}  // namespace

int leave_verb(int argc, char** argv) {
  return ask(
      {.verb = "poseidon-node leave",
       .wants = link_identity::purpose::ask_to_leave,
       .description =
           "Asks a node to leave: it trains up to an iteration that all nodes agree on, gives "
           "its solver state to the others, and ends with exit code 0. They go on without it.",
       .at = "HOST:PORT where the node that is to leave accepts other nodes",
       .event = "leave",
       .answer = "has been asked to leave; its own lines say when it has left",
       .refuses = "does not leave"},
      argc, argv);
}

int go_on_verb(int argc, char** argv) {
  return ask(
      {.verb = "poseidon-node go-on",
       .wants = link_identity::purpose::ask_to_go_on,
       .description =
           "Tells a node that is paused, because it hears too few others to know that these do "
           "not train on elsewhere, that they have ended: it goes on with those that it hears. "
           "Where they do train on, there are two runs from then on, which write snapshots of "
           "the same names.",
       .at = "HOST:PORT where the paused node accepts other nodes",
       .event = "go_on",
       .answer = "has been told that the members it does not hear have ended",
       .refuses = "does not go on"},
      argc, argv);
}

}  // namespace poseidon::app
