// apps/poseidon_graph.cpp - draws the actors that a node would run for a net or solver, before anything runs; shows a
// run that is over in the page that --web shows of one that goes on.
#include "actors/actor_graph.hpp"
#include "apps/graph/output.hpp"
#include "apps/graph/plan.hpp"
#include "apps/run_app.hpp"
#include "apps/web/recorded_site.hpp"

#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>
#include <iostream>

namespace poseidon::app {

namespace {

constexpr const char* examples = R"(Examples
  poseidon-graph models/zoo/lenet/solver.prototxt --nodes 2 -o lenet.svg
  poseidon-graph train_val.prototxt --input 3x32x32 --nodes 8 --devices cpu:2 -o net.json
  poseidon-graph --types            who can send what to whom, as Mermaid text
  poseidon-graph view trace.json    a finished run (poseidon-node --trace) in the browser

An SVG needs Graphviz's program dot (Debian: apt-get install graphviz). Sources of data that are not there
do not matter: --input says the shape of their samples; without it one is guessed, and the guess is said.
Exit codes: 0 done, 2 wrong use or a bad file.)";

/// Until it is interrupted.
int view(int argc, char** argv) {
  std::filesystem::path trace;
  std::string at = "127.0.0.1:7680";
  CLI::App app("Shows a finished run in the browser: timeline, actors, curves.",
               "poseidon-graph view");
  app.add_option("trace", trace, "what poseidon-node --trace has written")->required();
  app.add_option("--web", at, "HOST:PORT on this machine where the page is served");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    throw spec_error(std::string(e.what()) + ". poseidon-graph view --help lists the options.");
  }
  const auto address = parse_host_port(at);
  if (!is_loopback(address))
    throw spec_error(
        "--web " + at +
        " can be reached from other machines: serve 127.0.0.1 and tunnel with ssh -L.");
  sigset_t ends;
  sigemptyset(&ends);
  for (const int s : {SIGINT, SIGTERM}) sigaddset(&ends, s);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);  // before the server's thread is there
  const auto page = web::serve_recording(address, trace);
  std::printf("page at http://%s/; Ctrl-C ends it\n", to_string(page->address()).c_str());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&ends, &signal);
  return 0;
}

int run(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "view") return view(argc - 1, argv + 1);
  graph_options o;
  std::string devices = "cpu:1", input;
  std::filesystem::path output = "-";
  bool types = false;
  CLI::App app(
      "Draws the actor graph of a net: which actors a node runs and what flows between them.",
      "poseidon-graph");
  app.footer(examples);
  app.add_option("spec", o.spec, "solver or net prototxt");
  app.add_option("--nodes", o.nodes, "how many nodes train together")->check(CLI::Range(1, 4096));
  app.add_option("--worker", o.worker, "whose actors are drawn; 0 has the coordinator");
  app.add_option("--devices", devices, "cpu, or cpu:R for R replicas on each node");
  app.add_option("--input", input, "shape of a sample, like 1x28x28, instead of asking the data");
  app.add_option("--data-root", o.data_root, "folder from which relative data sources start");
  app.add_option(
      "--routes", o.routes,
      "how gradients travel between nodes: ps, sfb, or a file as poseidon-node takes it");
  app.add_option("-o,--output", output, "x.dot, x.svg or x.json; - for DOT on standard output");
  app.add_flag("--types", types, "print the graph of actor classes instead");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    throw spec_error(std::string(e.what()) + ". poseidon-graph --help lists the options.");
  }
  if (types) {
    std::cout << print_type_graph();
    return 0;
  }
  if (o.spec.empty())
    throw spec_error("no specification: give a solver or net prototxt. --help shows examples.");
  o.replicas = parse_replicas(devices);
  if (!input.empty()) o.input = parse_shape(input);
  write_graph(plan_of(o), output);
  return 0;
}

}  // namespace

}  // namespace poseidon::app

int main(int argc, char** argv) {
  return poseidon::app::run_app(argc, argv, poseidon::app::run);
}
