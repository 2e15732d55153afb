// apps/node/status_verb.cpp - poseidon-node status and members: what the page of a running node says, as text.
#include "apps/cli.hpp"
#include "apps/node/options.hpp"
#include "apps/node/verbs.hpp"
#include "apps/run_app.hpp"
#include "apps/terminal/reporter.hpp"
#include "apps/tls_options.hpp"
#include "apps/web/client.hpp"
#include "apps/web/token.hpp"

#include <CLI/CLI.hpp>

#include <string>

namespace poseidon::app {

namespace {

/// What a verb asks a page.
struct question {
  const char* name;
  const char* description;
  const char* text;  ///< path of the answer for people
  const char* json;  ///< for programs
  const char* event;
  const char* field;
};

/// Errors   spec_error: no page answers there.
std::string answer_of(const web::page_address& from, const char* target, const char* verb) {
  try {
    return web::fetch(from, target);
  } catch (const std::runtime_error& e) {
    throw spec_error(std::string("poseidon-node ") + verb + ": " + e.what());
  }
}

int ask(int argc, char** argv, const question& q) {
  command_line app(q.description, std::string("poseidon-node ") + q.name);
  std::string at = default_page;
  std::filesystem::path token_file;
  app.add_option("--attach", at, "HOST:PORT of the page of a node, its --web");
  app.add_option("--web-token-file", token_file,
                 "file whose first line the node's page wants to know");
  tls_files tls;
  add_tls_reader_options(app, tls);
  app.footer(
      "Only the leader knows of all others. Exit codes: 0 it answers, 2 it does not, or wrong "
      "use.");
  output_words words;
  app.add_flag("--json", words.json, "an object for programs instead of text for people");
  if (!parsed(app, argc, argv)) return 0;
  const web::page_address from{
      parse_host_port(at),
      token_file.empty() ? std::string() : web::read_token("--web-token-file", token_file),
      tls_of_reader(tls)};
  reporter out(words);
  out.until_end(
      [&] {
        auto said = answer_of(from, words.json ? q.json : q.text, q.name);
        while (said.ends_with('\n')) said.pop_back();
        out.result(said);
        if (words.json) out.event(json_event(q.event).json(q.field, {said}));
      },
      exit_code_of);
  return 0;
}

}  // namespace

int status_verb(int argc, char** argv) {
  return ask(argc, argv,
             {"status", "Says how far a run is, how its nodes are, and who waits for whom.",
              "/api/status", "/api/status.json", "status", "run"});
}

int members_verb(int argc, char** argv) {
  return ask(
      argc, argv,
      {"members", "Says which nodes take part in a run, where they are, and which one leads.",
       "/api/members", "/api/members.json", "members", "view"});
}

}  // namespace poseidon::app
