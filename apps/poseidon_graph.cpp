// apps/poseidon_graph.cpp - draws the actors that a node would run for a net or solver, before anything runs; serves on
// this machine the page of a node that runs elsewhere, or of a finished run.
#include "actors/telemetry/graph_text.hpp"
#include "actors/telemetry/type_graph.hpp"
#include "apps/cli.hpp"
#include "apps/graph/output.hpp"
#include "apps/graph/plan.hpp"
#include "apps/run_app.hpp"
#include "apps/tls_options.hpp"
#include "apps/web/attached_site.hpp"
#include "apps/web/recorded_site.hpp"
#include "apps/web/token.hpp"
#include "messages/wire/codec.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string_view>

namespace poseidon::app {

namespace {

constexpr const char* examples = R"(Examples
  poseidon-graph models/zoo/lenet/solver.prototxt --nodes 2 -o lenet.svg
  poseidon-graph train_val.prototxt --input 3x32x32 --nodes 8 --devices cpu:2 -o net.json
  poseidon-graph --types            who can send what to whom, as Mermaid text
  poseidon-graph view snapshots/    the curves and actors of a finished run in the browser, from beside its snapshots
  poseidon-graph view trace.json    the same with its timeline (poseidon-node --trace)
  poseidon-graph --attach head:7680               the run behind that node's page (poseidon-node --web), in a browser here
  poseidon-graph --attach head:7680 -o now.svg    its actors at this moment

An SVG needs Graphviz's program dot (Debian: apt-get install graphviz). Sources of data that are not there
do not matter: --input says the shape of their samples; without it one is guessed, and the guess is said.
Exit codes: 0 done, 1 a node does not answer, 2 wrong use or a bad file.)";

/// Checks the address at which a forwarded page is served: the original may be protected by a token or by its machine.
host_port loopback(const std::string& text) {
  const auto at = parse_host_port(text);
  if (!is_loopback(at))
    throw spec_error(
        "--web " + text +
        " can be reached from other machines: serve 127.0.0.1 and tunnel with ssh -L.");
  return at;
}

/// Blocks the signals that end the program. Called before a server's thread starts, so that the thread inherits the mask.
class until_interrupted {
 public:
  until_interrupted() {
    sigemptyset(&ends_);
    for (const int s : {SIGINT, SIGTERM}) sigaddset(&ends_, s);
    pthread_sigmask(SIG_BLOCK, &ends_, nullptr);
  }
  void wait(const std::string& said) const {
    std::printf("%s; Ctrl-C ends it\n", said.c_str());
    require_output();
    int signal = 0;
    sigwait(&ends_, &signal);
  }

 private:
  sigset_t ends_{};
};

int view(int argc, char** argv) {
  std::filesystem::path recorded;
  std::string at = "127.0.0.1:7680";
  command_line app("Shows a finished run in the browser: timeline, actors, curves.",
                   "poseidon-graph view");
  app.add_option("run", recorded,
                 "folder with a run's snapshots, or what poseidon-node --trace has written")
      ->required();
  app.add_option("--web", at, "HOST:PORT on this machine where the page is served");
  if (!parsed(app, argc, argv)) return 0;
  const auto address = loopback(at);
  const until_interrupted interrupted;
  const auto page = web::serve_recording(address, recorded);
  interrupted.wait("page at " + page->url());
  return 0;
}

/// The actors of a running node at this moment, as that node reports them.
void draw_attached(const web::page_address& node, std::optional<std::uint32_t> worker,
                   const std::filesystem::path& output) {
  const auto query = worker ? "?node=" + std::to_string(*worker) : std::string();
  write_graph({[&] { return web::fetch(node, "/api/dot" + query); },
               [&] { return web::fetch(node, "/api/graph" + query); }},
              output);
}

int attach(int argc, char** argv) {
  std::string node, at = "127.0.0.1:0";
  std::filesystem::path token_file, output;
  std::optional<std::uint32_t> worker;
  command_line app(
      "Shows the page of a running node in a browser on this machine, or draws its actors.",
      "poseidon-graph attach");
  app.add_option("node,--attach", node, "HOST:PORT of the page of a node, its --web")->required();
  app.add_option("--web", at,
                 "HOST:PORT on this machine where the page is served; port 0: any that is free");
  app.add_option("--web-token-file", token_file,
                 "file whose first line the node's page wants to know");
  tls_files tls;
  add_tls_reader_options(app, tls);
  app.add_option("-o,--output", output,
                 "draw the actors of this moment instead: x.dot, x.svg or x.json; - for DOT on "
                 "standard output");
  app.add_option("--worker", worker, "whose actors are drawn; the node's own unless given");
  if (!parsed(app, argc, argv)) return 0;
  web::page_address from{
      parse_host_port(node),
      token_file.empty() ? std::string() : web::read_token("--web-token-file", token_file),
      tls_of_reader(tls)};
  if (!output.empty()) {
    draw_attached(from, worker, output);
    return 0;
  }
  if (worker) throw spec_error("--worker belongs to -o; the page lets you choose.");
  const auto address = loopback(at);
  (void)web::fetch(from, "/healthz");  // a mistyped address is reported now
  const until_interrupted interrupted;
  const auto page = web::serve_attached(address, from);
  interrupted.wait("page at " + page->url() +
                   (from.token.empty() ? "" : "?token=T, where T is the token"));
  return 0;
}

bool attaches(int argc, char** argv) {
  return std::any_of(argv + 1, argv + argc, [](const std::string_view word) {
    return word == "--attach" || word.starts_with("--attach=");
  });
}

int run(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "view") return view(argc - 1, argv + 1);
  if (verb == "attach") return attach(argc - 1, argv + 1);
  if (attaches(argc, argv)) return attach(argc, argv);
  graph_options o;
  std::string devices = "cpu:1", input;
  std::filesystem::path output = "-";
  bool types = false;
  command_line app(
      "Draws the actor graph of a net: which actors a node runs and what flows between them.",
      "poseidon-graph");
  app.footer(examples);
  app.add_option("spec", o.spec, "solver or net prototxt");
  app.add_option("--nodes", o.nodes, "how many nodes train together")->check(CLI::Range(1, 4096));
  app.add_option("--survive", o.survive,
                 "how many other nodes keep a copy of each node's solver state")
      ->check(CLI::Range(0u, max_survive))
      ->capture_default_str();
  app.add_option("--worker", o.worker, "whose actors are drawn; 0 has the protocol_selector");
  app.add_option("--devices", devices, "cpu, or cpu:R for R replicas on each node");
  app.add_option("--input", input, "shape of a sample, like 1x28x28, instead of asking the data");
  app.add_option("--data-root", o.data_root, "folder from which relative data sources start");
  app.add_option(
      "--routes", o.routes,
      "how gradients travel between nodes: ps, sfb, or a file as poseidon-node takes it");
  app.add_option("-o,--output", output, "x.dot, x.svg or x.json; - for DOT on standard output");
  app.add_flag("--types", types, "print the graph of actor classes instead");
  if (!parsed(app, argc, argv)) return 0;
  if (types) {
    std::cout << print_type_graph();
    return 0;
  }
  if (o.spec.empty())
    throw spec_error("no specification: give a solver or net prototxt. --help shows examples.");
  o.replicas = parse_replicas(devices);
  if (!input.empty()) o.input = parse_shape(input);
  const auto g = plan_of(o);
  write_graph({[&] { return to_dot(g); }, [&] { return to_json(g); }}, output);
  return 0;
}

}  // namespace

}  // namespace poseidon::app

int main(int argc, char** argv) {
  return poseidon::app::run_app(argc, argv, poseidon::app::run);
}
