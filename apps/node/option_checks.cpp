#include "apps/node/option_checks.hpp"

#include "apps/web/open_doors.hpp"
#include "data/batch_shares.hpp"
#include "models/solver/solver_file.hpp"
#include "models/spec/spec_file.hpp"
#include "models/words.hpp"

#include <CLI/CLI.hpp>

namespace poseidon::app {

namespace {

/// Whether a file's name ends like one of Caffe's weights, or of its solver states.
bool names_weights(const std::string& path) {
  return path.ends_with(".caffemodel") || path.ends_with(".caffemodel.h5");
}
bool names_state(const std::string& path) {
  return path.ends_with(".solverstate") || path.ends_with(".solverstate.h5");
}

void check_files(const node_options& o) {
  const auto snapshot = o.snapshot.string();
  if (names_weights(snapshot))
    throw spec_error("--snapshot " + snapshot +
                     ": these are weights. --weights starts from them; to resume the run give "
                     "--snapshot the .solverstate beside them.");
  for (const auto& path : split_paths(o.weights))
    if (names_state(path.string()))
      throw spec_error("--weights " + path.string() +
                       ": this is the state of a solver. --snapshot resumes from it; to start from "
                       "its weights give --weights the .caffemodel beside it.");
}

void check_global_batch(const node_options& o, const share_option& shares) {
  if (o.global_batch != "keep") return;
  if (shares.what != share_option::kind::equal)
    throw spec_error("--global-batch keep does not go with --batch-share " + o.batch_share +
                     ": as nodes join and leave, all take equal parts. Leave out one of the two.");
  if (o.own_data)
    throw spec_error(
        "--global-batch keep does not go with --own-data: as nodes join and leave, each would go "
        "through its own part of the data at another pace. Leave out one of the two.");
}

}  // namespace

void check(const node_options& o) {
  const bool only_joins = !o.join.empty() && o.solver.empty();
  if (!o.join.empty() && !only_joins && !o.listen)
    throw spec_error(
        "--join and --solver together need --listen: a node that has both joins the run at --join, "
        "or begins it where there is none, and then the others join here. Without --solver "
        "everything comes from the node that it joins.");
  if (only_joins && (o.nodes > 1 || !o.weights.empty() || !o.snapshot.empty() || o.synthetic ||
                     o.routes != "auto" || o.wire != "float32" || o.staleness ||
                     o.batch_share != "equal" || o.survive || o.lost_state != "end" ||
                     !o.views.empty() || !o.keep_best.empty() || !o.stop_at.empty()))
    throw spec_error(
        "--join goes with none of --nodes, --weights, --snapshot, --synthetic, --routes, --wire, "
        "--staleness, --batch-share, --survive, --lost-state, --views, --keep-best, "
        "--stop-at: "
        "those belong to the first node. (With --solver they are for the run that this node "
        "begins where there is none.)");
  if (only_joins && o.replay && (o.replay->times != 1 || o.replay->bytes != 1 || o.replay->fifo))
    throw spec_error(
        "--join goes without time, bytes and fifo in --devices replay:FILE,...: the first node's "
        "hold for all.");
  if (o.join.empty() && o.solver.empty())
    throw spec_error(
        "nothing to do: give --solver FILE to train, or --join HOST:PORT to help another "
        "node. --help shows examples.");
  if (!o.views.empty() && !o.listen)
    throw spec_error("--views needs --listen: other nodes join there.");
  const auto shares = parse_shares(o.batch_share, o.nodes);
  if (shares.what != share_option::kind::equal && o.own_data)
    throw spec_error(
        "--own-data does not go with --batch-share: a node with a larger share would go through "
        "its own part of the data faster than the others through theirs.");
  check_global_batch(o, shares);
  if (!o.explain_routes.empty()) {
    if (shares.what != share_option::kind::equal)
      throw spec_error(
          "--explain-routes reckons with nodes that are alike; leave out --batch-share. A run "
          "counts the shares in when it chooses.");
    if (o.json)
      throw spec_error(
          "--json is for a run; for programs --explain-routes=json prints the reckoning.");
    if (!o.join.empty() || o.nodes < 2)
      throw spec_error(
          "--explain-routes needs --solver and --nodes N with N >= 2: routes lead from node to "
          "node.");
    return;
  }
  if (o.nodes > 1 && !o.listen)
    throw spec_error("--nodes " + std::to_string(o.nodes) +
                     " needs --listen HOST:PORT, the address "
                     "that the other nodes join.");
  if (only_joins && (!o.csv.empty() || !o.tensorboard.empty()))
    throw spec_error(
        "--csv and --tensorboard belong to the first node: only it knows the outputs of all "
        "nodes.");
  web::require_tokens({o.listen, o.web, o.join, o.token, o.web_token});
  check_files(o);
  if (!o.weights.empty() && !o.snapshot.empty())
    throw spec_error(
        "--weights and --snapshot exclude each other: a snapshot names its own weights.");
  if (o.replay && (!o.weights.empty() || !o.snapshot.empty()))
    throw spec_error(
        "--devices replay goes with neither --weights nor --snapshot: it trains no model.");
}

namespace {

/// What a witness can be told; all others are of nodes that train.
const std::vector<std::string> of_witnesses{
    "--witness",       "--join",           "--listen",    "--token-file", "--tls-cert",
    "--tls-key",       "--tls-ca",         "--no-rejoin", "--log-level",  "--quiet",
    "--silence-limit", "--progress-limit", "--json",      "--log-format", "--log-dir"};

}  // namespace

void check_witness(const node_options& o, const CLI::App& app) {
  if (o.join.empty())
    throw spec_error(
        "--witness needs --join HOST:PORT: a witness joins a run, and begins none. Give it the "
        "address of any node of the run.");
  std::vector<std::string> others;
  for (const auto* const option : app.get_options()) {
    const auto name = option->get_name();
    if (option->count() > 0 &&
        std::find(of_witnesses.begin(), of_witnesses.end(), name) == of_witnesses.end())
      others.push_back(name);
  }
  if (others.empty()) return;
  throw spec_error("--witness does not go with " + comma_list(others) +
                   ": a witness trains nothing, so it has no net, no data, no devices and nothing "
                   "to show. Leave out " +
                   (others.size() == 1 ? "that option" : "these options") +
                   ", or --witness where the node is to train.");
}

std::vector<std::string> without_effect(const node_options& o, const CLI::App& app) {
  if (!o.join.empty() || o.nodes > 1) return {};
  if (o.listen)  // others may join
    return app.count("--wire") == 0 ? std::vector<std::string>{}
                                    : std::vector<std::string>{
                                          "--wire has no effect: a run that begins with one node "
                                          "sends float32, also when "
                                          "others have joined. Give --nodes N with N >= 2."};
  std::vector<std::string> idle;
  for (const std::string option :
       {"--wire", "--routes", "--staleness", "--batch-share", "--survive", "--lost-state",
        "--own-data", "--link-mbit", "--bandwidth-budget", "--token-file", "--silence-limit",
        "--progress-limit"})
    if (app.count(option) > 0) idle.push_back(option);
  for (const std::string option : {"--tls-cert", "--tls-key", "--tls-ca"})
    if (!o.web && app.count(option) > 0) idle.push_back(option);
  if (o.snapshot.empty() && !o.global_batch.empty()) idle.emplace_back("--global-batch");
  if (idle.empty()) return {};
  return {comma_list(idle) + (idle.size() == 1 ? " has" : " have") +
          " no effect: this node trains alone. --nodes N and --listen HOST:PORT start a cluster."};
}

}  // namespace poseidon::app
