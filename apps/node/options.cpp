#include "apps/node/options.hpp"

#include "apps/node/command_again.hpp"
#include "apps/node/devices.hpp"
#include "apps/node/given_options.hpp"
#include "apps/node/option_binder.hpp"
#include "apps/node/option_checks.hpp"
#include "apps/node/train_command.hpp"
#include "apps/node/verbs.hpp"
#include "apps/terminal/reporter.hpp"
#include "apps/web/token.hpp"
#include "messages/wire/codec.hpp"
#include "models/solver/solver_file.hpp"
#include "models/spec/spec_file.hpp"

#include <CLI/CLI.hpp>

#include <cmath>
#include <string_view>

namespace poseidon::app {

/// Options whose text is parsed after all of them have been read.
struct option_words {
  std::filesystem::path web_token_file;
  tls_files tls;
  std::string listen, web, synthetic, explain;
  std::vector<std::string> join;
  bool no_rejoin = false;
  device_words devices;
  output_words output;
  caffe_words caffe;
};

namespace {

constexpr const char* examples = R"(Examples
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

void add_training_options(option_binder& add, node_options& o, option_words& words) {
  add.value("--solver", o.solver);
  add.value("--weights", o.weights);
  add.value("--snapshot", o.snapshot);
  add.value("--keep-snapshots", o.keep_snapshots)->check(CLI::Range(0, 1000000));
  add.value("--keep-best", o.keep_best);
  add.value("--stop-at", o.stop_at);
  add.value("--seed", o.seed);
  add.value("--data-root", o.data_root);
  add.flag("--own-data", o.own_data);
  add.value("--synthetic", words.synthetic);
}

void add_cluster_options(option_binder& add, node_options& o, option_words& words) {
  add.value("--listen", words.listen);
  add.value("--nodes", o.nodes)->check(CLI::Range(1, 4096));
  add.value("--join", words.join)->delimiter(',');
  add.flag("--witness", o.witness);
  add.value("--token-file", o.token_file);
  add.value("--tls-cert", words.tls.certificate);
  add.value("--tls-key", words.tls.key);
  add.value("--tls-ca", words.tls.authority);
  add.value("--silence-limit", o.silence_limit)->check(CLI::Validator(silence_limit_objection, ""));
  add.value("--progress-limit", o.progress_limit_s)->check(CLI::Range(0.0, 1e6));
  add.flag("--no-rejoin", words.no_rejoin);
  add.value("--survive", o.survive)->check(CLI::Range(0u, max_survive));
  add.value("--lost-state", o.lost_state);
  add.value("--batch-share", o.batch_share);
  add.value("--global-batch", o.global_batch);
  add.value("--views", o.views);
}

void add_value_options(option_binder& add, node_options& o, option_words& words) {
  add.value("--routes", o.routes);
  add.value("--rank", o.rank)->check(CLI::IsMember({4u, 8u}));
  add.value("--explain-routes", words.explain)->check(CLI::IsMember({"table", "json"}));
  add.value("--wire", o.wire);
  add.value("--lossy", o.lossy);
  add.value("--staleness", o.staleness)->check(CLI::Range(0u, max_staleness));
  add.value("--link-mbit", o.link_mbit_s)->check(positive_number);
  add.value("--bandwidth-budget", o.budget_mbit_s)->check(positive_number);
}

void add_display_options(option_binder& add, node_options& o, option_words& words) {
  add.value("--web", words.web);
  add.value("--web-token-file", words.web_token_file);
  add.value("--trace", o.trace);
  add.value("--graph", o.graph);
  add.value("--csv", o.csv);
  add.value("--tensorboard", o.tensorboard);
  add.value("--log-level", o.log_level);
  add.flag("--quiet", words.output.quiet);
  add.flag("--json", words.output.json);
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

std::string footer_of_help() {
  std::string text = "Verbs (poseidon-node VERB --help says more)\n";
  for (const auto& one : all_verbs()) {
    std::string name = one.name;
    name.resize(14, ' ');
    text += "  " + name + one.about + "\n";
  }
  return text + "\n" + examples;
}

/// The rows of the table as options of `app`, and what is no option of ours but accepted.
void add_all(command_line& app, node_options& o, option_words& words) {
  option_binder add(app, true);
  add_training_options(add, o, words);
  add_device_options(add, words.devices);
  add_cluster_options(add, o, words);
  add_value_options(add, o, words);
  add_display_options(add, o, words);
  add_caffe_options(add, words.caffe);
  add_ignored_options(app, of_other_verbs);
}

void take_words(node_options& o, const CLI::App& app, const option_words& words) {
  if (words.output.quiet) o.log_level = "quiet";
  o.json = words.output.json;
  o.rejoin = !words.no_rejoin;
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
}

void take_secrets(node_options& o, const option_words& words) {
  if (!o.token_file.empty()) o.token = web::read_token("--token-file", o.token_file);
  if (!words.web_token_file.empty())
    o.web_token = web::read_token("--web-token-file", words.web_token_file);
}

}  // namespace

train_command::train_command()
    : command_line("Trains a Caffe net on this machine, alone or together with others.",
                   "poseidon-node"),
      words_(std::make_unique<option_words>()) {
  footer(footer_of_help());
  add_all(*this, options_, *words_);
}

train_command::~train_command() = default;

node_options train_command::taken(int argc, const char* const* argv) {
  const given_options given(*this);
  given.require_role();
  given.require_rules();
  auto& o = options_;
  take_words(o, *this, *words_);
  take_secrets(o, *words_);
  check(o);
  o.tls = tls_of_links(words_->tls);
  o.command = command_again(*this, argc, argv);
  for (auto line : {web::warn_of_readers("--token-file", o.token_file),
                    web::warn_of_readers("--web-token-file", words_->web_token_file),
                    web::warn_of_readers("--tls-key", words_->tls.key)})
    if (!line.empty()) o.warnings.push_back(std::move(line));
  for (auto& line : given.without_effect()) o.warnings.push_back(std::move(line));
  return o;
}

std::optional<node_options> parse_options(int argc, char** argv) {
  train_command command;
  if (!parsed(command, argc, argv)) return std::nullopt;
  return command.taken(argc, argv);
}

}  // namespace poseidon::app
