#include "apps/node/options.hpp"

#include "apps/cli.hpp"
#include "apps/node/command_again.hpp"
#include "apps/node/devices.hpp"
#include "apps/node/option_checks.hpp"
#include "apps/terminal/reporter.hpp"
#include "apps/tls_options.hpp"
#include "apps/web/token.hpp"
#include "messages/wire/codec.hpp"
#include "models/solver/solver_file.hpp"
#include "models/spec/spec_file.hpp"

#include <CLI/CLI.hpp>

#include <cmath>
#include <string_view>

namespace poseidon::app {

namespace {

constexpr const char* examples = R"(Verbs (poseidon-node VERB --help says more)
  train         the default
  check         all that training looks at before it begins; trains nothing
  test          a model's outputs, averaged over batches
  time          milliseconds and GFLOP/s of each layer, and the peak of memory
  classify      the most probable classes of pictures
  device-query  what this machine offers to --devices
  status        how far a run is, and how its nodes are
  members       which nodes take part in a run, where they are, and which one leads
  leave         asks a node to leave its run, which goes on without it
  go-on         tells a paused node that those it does not hear have ended

Examples
  one machine
    poseidon-node --solver models/zoo/lenet/solver.prototxt
  the run as events for a program: an object a line, docs/json-events.md
    poseidon-node --solver solver.prototxt --json
  four machines: the first says what is trained, the others only where it is
    head$  poseidon-node --solver solver.prototxt --listen 0.0.0.0:7600 --nodes 4 --token-file token
    others$ poseidon-node --join head:7600 --token-file token
  the run in a browser on this machine
    poseidon-node --solver solver.prototxt --web 127.0.0.1:7680
  a third vote on a small machine, so that either of two nodes can be lost or cut off
    small$ poseidon-node --witness --join head:7600 --token-file token
  two replicas on this machine's cores, and a trace for ui.perfetto.dev
    poseidon-node --solver solver.prototxt --devices cpu:2 --trace trace.json

Exit codes: 0 done; 2 wrong use or a bad file; 3 a peer was lost; 4 training diverged;
130 and 143 stopped by SIGINT and SIGTERM, after a snapshot; 1 anything else.)";

std::string silence_limit_objection(const std::string& given) {
  double seconds = 0;
  const bool is_number = CLI::detail::lexical_cast(given, seconds);
  if (given == "auto" || (is_number && seconds >= 0.5 && seconds <= 3600)) return {};
  return given + " is neither auto nor a number of seconds from 0.5 to 3600";
}

/// What `caffe` has for another verb is accepted, as gflags does.
const std::vector<std::string> of_other_verbs{"--iterations", "--phase", "--model"};

void take_caffe_words(node_options& o, const CLI::App& app, const caffe_words& words) {
  o.sigint = parse_signal_effect("--sigint-effect", words.sigint_effect);
  o.sighup = parse_signal_effect("--sighup-effect", words.sighup_effect);
  if (app.count("--level") > 0) o.level = words.level;
  o.stages = comma_separated(words.stages);
  if (!o.join.empty() && (o.level || !o.stages.empty()))
    throw spec_error("--join goes without --level and --stage: the first node's hold for all.");
  if (o.json && words.log_format != "text")
    throw spec_error(
        "--json and --log-format " + words.log_format +
        " exclude each other. --log-dir writes Caffe's lines to a file beside --json.");
  o.log_format = words.log_format;
  o.log_dir = words.log_dir;
  o.warnings = ignored_options(app, of_other_verbs);
  if (app.count("--gpu") > 0 && o.gpus && o.gpus->ordinals.size() > 1)
    o.warnings.push_back("--gpu " + o.gpus->text + ": the " +
                         std::to_string(o.gpus->ordinals.size()) +
                         " GPUs split the net's batch_size. Caffe trains a batch on each: for the "
                         "same training multiply batch_size by " +
                         std::to_string(o.gpus->ordinals.size()) + ".");
}

void take_output(node_options& o, const output_words& words, bool level_given) {
  if (words.quiet && level_given && o.log_level != "quiet")
    throw spec_error("--quiet and --log-level " + o.log_level +
                     " contradict each other: --quiet is --log-level quiet.");
  if (words.quiet) o.log_level = "quiet";
  o.json = words.json;
}

/// Options whose text is parsed after all of them have been read.
struct option_words {
  std::filesystem::path web_token_file;
  tls_files tls;
  std::string listen, web, synthetic, explain;
  std::vector<std::string> join;
  device_words devices;
  output_words output;
  caffe_words caffe;
};

void add_cluster_options(CLI::App& app, node_options& o, option_words& words) {
  app.add_option("--listen", words.listen,
                 "HOST:PORT where other nodes join this one (the first node); with --join where it "
                 "listens in the run, else at a free port");
  app.add_option("--nodes", o.nodes,
                 "how many nodes have to be there before training begins, this one included")
      ->check(CLI::Range(1, 4096));
  app.add_option(
         "--join", words.join,
         "HOST:PORT of any node of the run, or several of them, separated by commas; everything "
         "else comes from there. With --solver: begin the run where none of them is in one")
      ->delimiter(',');
  app.add_flag(
      "--witness", o.witness,
      "with --join: a node that trains nothing and has a vote on which nodes go on after a "
      "loss, so that one of two goes on when they do not hear each other. It has no net, "
      "no data and no devices; any small machine that reaches all nodes will do");
  app.add_option("--token-file", o.token_file, "file whose first line is the cluster's secret");
  add_tls_options(app, words.tls);
  app.add_option(
         "--silence-limit", o.silence_limit,
         "seconds after which another node that cannot be heard is lost (0.5 to 3600); auto: "
         "2, and where the others go on without it six times the longest silence of its "
         "link in the last minute, between 0.7 and 2")
      ->check(CLI::Validator(silence_limit_objection, ""))
      ->type_name("auto|S")
      ->capture_default_str();
  app.add_flag_callback(
      "--no-rejoin", [&o] { o.rejoin = false; },
      "end where the other nodes have gone on without this one, which they could not hear; "
      "else it joins them again");
  app.add_option("--progress-limit", o.progress_limit_s,
                 "seconds without any progress, though all nodes can be heard, after which the "
                 "run ends; 0: none")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
}

void add_model_options(CLI::App& app, node_options& o) {
  app.add_option("--weights", o.weights,
                 ".caffemodel to start from, copied by layer name; several with commas");
  app.add_option("--snapshot,--resume", o.snapshot,
                 ".solverstate to resume from; auto: the newest one with the solver's "
                 "snapshot_prefix, or none");
  app.add_option("--keep-snapshots", o.keep_snapshots,
                 "number of this run's snapshots to keep, the newest ones; 0: all")
      ->check(CLI::Range(0, 1000000))
      ->default_str("0");
  app.add_option("--keep-best", o.keep_best,
                 "OUTPUT of a test net: the model with its best value is kept, too, as "
                 "PREFIX_best_iter_N; best is the least of a loss and the greatest of anything "
                 "else, or OUTPUT=min, OUTPUT=max");
  app.add_option("--stop-at", o.stop_at,
                 "OUTPUT=VALUE: training ends when a test finds this value or a better one, as in "
                 "accuracy=0.99; <= or >= says which values are better");
  app.add_option("--staleness", o.staleness,
                 "with --nodes: an iteration may compute with parameters that are at most this "
                 "number of iterations old; overrides the solver's poseidon { staleness }")
      ->check(CLI::Range(0u, max_staleness))
      ->default_str("the solver's, 0 unless it says otherwise");
  app.add_option("--seed", o.seed, "of the fillers, dropout and the order of random data")
      ->default_str("the solver's random_seed");
}

void add_data_options(CLI::App& app, node_options& o, option_words& words) {
  app.add_option("--data-root", o.data_root,
                 "folder from which relative data sources start on this node");
  app.add_flag("--own-data", o.own_data,
               "the train net reads this node's own part of the data (made by poseidon-data "
               "partition); give it to every node of a cluster");
  app.add_option("--synthetic", words.synthetic,
                 "random images instead of data and base_lr 0, for timing: no tests, no snapshots; "
                 "CxHxW where the data layers do not say")
      ->expected(0, 1);
}

void add_view_options(CLI::App& app, node_options& o, option_words& words) {
  app.add_option("--web", words.web,
                 std::string("HOST:PORT where a browser sees the run: actors, timeline, curves, "
                             "members; ") +
                     default_page + " if it is left out")
      ->expected(0, 1);
  app.add_option("--web-token-file", words.web_token_file,
                 "file whose first line a reader of --web has to know; needed when other machines "
                 "can reach the page");
  app.add_option("--trace", o.trace, "writes a Chrome trace (JSON; ui.perfetto.dev opens it)");
  app.add_option("--csv", o.csv,
                 "writes outputs as a table, a row for each display interval; tests go to "
                 "FILE.test0.csv (the first node)");
  app.add_option("--tensorboard", o.tensorboard,
                 "FOLDER for TensorBoard's event files: outputs, learning rate, tests (the first "
                 "node)");
  app.add_option("--graph", o.graph, "writes the measured actor graph (JSON) at the end");
  app.add_option("--log-level", o.log_level, "quiet, info or debug")
      ->check(CLI::IsMember({"quiet", "info", "debug"}));
  add_output_options(app, words.output);
}

void add_link_options(CLI::App& app, node_options& o) {
  app.add_option("--link-mbit", o.link_mbit_s, "limits each link to this number of Mbit/s")
      ->check(positive_number)
      ->default_str("no limit");
  app.add_option("--bandwidth-budget", o.budget_mbit_s,
                 "sends at most this number of Mbit/s of gradients and parameters to each other "
                 "node; with --staleness the values that change most go first")
      ->check(positive_number)
      ->default_str("no limit");
}

void add_exchange_options(CLI::App& app, node_options& o, option_words& words) {
  app.add_option(
      "--routes", o.routes,
      "how gradients travel: auto (by the links' measured rate; auto:1000 where a node can send "
      "1000 Mbit/s), ps (parameter server), sfb (factors of every "
      "InnerProduct that can), or a file of lines `layer ps|sfb`");
  app.add_option("--wire", o.wire,
                 "format of gradients and updates on the parameter server's route: float32 "
                 "(exact), float16, bfloat16 (half the bytes), or a file of lines `layer format`");
  app.add_option("--batch-share", o.batch_share,
                 "how the nodes divide each iteration's samples: equal, auto (by the speed that "
                 "each measures before training), or a weight for each node, as in 3,1");
  app.add_option("--global-batch", o.global_batch,
                 "samples of an iteration as nodes join and leave: scale (default; each node takes "
                 "the net's batch), or keep (those of the first nodes stay, and each takes a part)")
      ->check(CLI::IsMember({"scale", "keep"}));
  app.add_option(
      "--views", o.views,
      "how many nodes train from which iteration on, a file of lines `iteration nodes`: "
      "a run with the same views as another one has the same results. Nodes wait to join "
      "until then, and the last ones leave");
  app.add_option("--survive", o.survive,
                 "how many nodes may be lost at the same time without loss of solver state: the "
                 "number of other nodes that keep a copy of each node's. Above 0 the others go on "
                 "where a node is killed while all train. 1 where a run of several nodes, or one "
                 "that listens, can have copies that cost no bytes")
      ->check(CLI::Range(0u, max_survive));
  app.add_option("--lost-state", o.lost_state,
                 "where more nodes are lost than --survive says, and solver state with them: end "
                 "(the default; the weights are saved), or zero (the others go on, and what is "
                 "lost begins with zeros, which the run says)")
      ->check(CLI::IsMember({"end", "zero"}));
  app.add_option("--explain-routes", words.explain,
                 "print what each route of each InnerProduct would cost --nodes N, and which is "
                 "chosen; =json for programs. Trains nothing")
      ->expected(0, 1)
      ->check(CLI::IsMember({"table", "json"}));
}

/// "auto:1000" is auto where a node can send 1000 Mbit/s, which then nobody measures.
void take_routes(node_options& o) {
  constexpr std::string_view with_rate = "auto:";
  if (!o.routes.starts_with(with_rate)) return;
  const auto given = o.routes.substr(with_rate.size());
  if (!CLI::detail::lexical_cast(given, o.link_rate_mbit_s) || !(o.link_rate_mbit_s > 0) ||
      !std::isfinite(o.link_rate_mbit_s))
    throw spec_error(
        "--routes " + o.routes + ": \"" + given +
        "\" is no rate. Give the Mbit/s that a node can send, as in auto:1000, or auto "
        "to have it measured.");
  o.routes = "auto";
}

void take_devices(node_options& o, const CLI::App& app, const device_words& words) {
  o.devices_given = app.count("--devices") + app.count("--gpu") > 0;
  o.gpu_words = words.gpus;
  o.gpu_option = gpu_option_of(app);
  if (o.devices_given || !o.join.empty()) o.gpus = gpus_of(app, words);
  o.readers = words.readers;
  o.replay = parse_replay(words.devices);
  if (o.replay) {
    o.replicas = 1;
  } else if (!o.gpus) {
    o.replicas = parse_devices(words.devices);
  }
}

}  // namespace

std::optional<node_options> parse_options(int argc, char** argv) {
  node_options o;
  option_words words;
  command_line app("Trains a Caffe net on this machine, alone or together with others.",
                   "poseidon-node");
  app.footer(examples);
  app.add_option("--solver", o.solver,
                 "solver prototxt; its nets and data are found from the working directory");
  add_cluster_options(app, o, words);
  add_device_options(
      app, words.devices,
      "; or replay:FILE: layers take the times of a profile, nothing is computed; with "
      ",time=X X times as long, with ,bytes=S a share of the values");
  add_model_options(app, o);
  add_data_options(app, o, words);
  add_view_options(app, o, words);
  add_link_options(app, o);
  add_exchange_options(app, o, words);
  add_caffe_options(app, words.caffe);
  add_ignored_options(app, of_other_verbs);
  if (!parsed(app, argc, argv)) return std::nullopt;

  take_output(o, words.output, app.count("--log-level") > 0);
  if (!words.listen.empty()) o.listen = parse_host_port(words.listen);
  for (const auto& address : words.join) o.join.push_back(parse_host_port(address));
  if (app.count("--web") > 0) o.web = parse_host_port(words.web.empty() ? default_page : words.web);
  take_devices(o, app, words.devices);
  take_routes(o);
  take_caffe_words(o, app, words.caffe);
  if (app.count("--synthetic") > 0) o.synthetic = words.synthetic;
  if (app.count("--explain-routes") > 0)
    o.explain_routes = words.explain.empty() ? "table" : words.explain;
  o.seed_given = app.count("--seed") > 0;
  if (!o.token_file.empty()) o.token = web::read_token("--token-file", o.token_file);
  if (!words.web_token_file.empty())
    o.web_token = web::read_token("--web-token-file", words.web_token_file);
  if (o.witness) check_witness(o, app);
  check(o);
  o.tls = tls_of_links(words.tls);
  o.command = command_again(app, argc, argv);
  for (auto line : {web::warn_of_readers("--token-file", o.token_file),
                    web::warn_of_readers("--web-token-file", words.web_token_file),
                    web::warn_of_readers("--tls-key", words.tls.key)})
    if (!line.empty()) o.warnings.push_back(std::move(line));
  const auto idle = without_effect(o, app);
  o.warnings.insert(o.warnings.end(), idle.begin(), idle.end());
  return o;
}

}  // namespace poseidon::app
