// tests/actors/node/node_rig.hpp - nodes in one simulated scheduler, on a fake network, with a small net on the CPU.
#pragma once
#include "actors/node/run_node.hpp"
#include "cpu/cpu_device.hpp"
#include "models/files/newest_state.hpp"
#include "models/files/snapshot.hpp"
#include "models/solver/solver_file.hpp"
#include "tests/actors/node/fake_network.hpp"
#include "tests/folder.hpp"

#include <doctest/doctest.h>
#include <google/protobuf/text_format.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace poseidon::test {

inline std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Keeps what a node tells its user. The hooks may throw: the actor that tells dies of it.
struct node_display : progress {
  std::vector<std::string> lines;
  std::uint64_t done = 0;  // clocks
  std::size_t tests = 0;   // whose results were shown
  std::vector<std::string> snapshots, snapshot_errors;
  std::vector<std::pair<std::uint64_t, std::string>> written;  // versions, and their bytes then
  std::vector<progress::view> views;
  std::function<void(const step&)> on_step = [](const step&) {};
  std::function<void(const std::string&)> on_line = [](const std::string&) {};

  void trained(const iteration&, const std::vector<output_value>&) override {}
  void tested(std::size_t, std::uint64_t, const std::vector<double>&,
              const std::vector<output_value>&) override {
    ++tests;
  }
  void snapshot(std::uint64_t version, const std::string& path, const std::string& error) override {
    if (std::filesystem::exists(path)) written.emplace_back(version, bytes_of(path));
    snapshots.push_back(path);
    snapshot_errors.push_back(error);
  }
  void note(const std::string& line) override { take(line); }
  void detail(const std::string& line) override { take(line); }
  void stepped(const step& s) override {
    done = s.done;
    on_step(s);
  }
  void viewed(const progress::view& v) override {
    views.push_back(v);
    progress::viewed(v);
  }
  void take(const std::string& line) {
    lines.push_back(line);
    on_line(line);
  }
  [[nodiscard]] bool said(const std::string& part) const {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const auto& l) { return l.find(part) != std::string::npos; });
  }
  /// What it said last, for who reads why a test has failed.
  [[nodiscard]] std::string last_lines() const {
    std::string out;
    for (auto n = lines.size() - std::min<std::size_t>(lines.size(), 60); n < lines.size(); ++n)
      out += "\n  " + lines[n];
    return out;
  }
};

struct scratch_folder : temporary_folder {
  [[nodiscard]] std::size_t snapshot_files() const {
    std::size_t found = 0;
    for (const auto& file : std::filesystem::directory_iterator(path()))
      found += file.path().filename().string().find("_iter_") != std::string::npos;
    return found;
  }
};

inline constexpr const char* node_test_net = R"(
  name: "two layers"
  layer { name: "data" type: "DummyData" top: "x" top: "y"
    dummy_data_param { shape { dim: 4 dim: 6 } shape { dim: 4 dim: 3 }
      data_filler { type: "gaussian" std: 1 } data_filler { type: "uniform" } } }
  layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "ip1"
    inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
  layer { name: "tanh" type: "TanH" bottom: "ip1" top: "tanh" }
  layer { name: "ip2" type: "InnerProduct" bottom: "tanh" top: "ip2"
    inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "ip2" bottom: "y" top: "loss" }
)";

/// One node of the simulation.
struct one_node {
  std::shared_ptr<node_display> display = std::make_shared<node_display>();
  std::shared_ptr<fake_network> network;
  std::string at;                      // where it listens
  std::shared_ptr<cluster_view> view;  // what its page shows
  std::optional<node_result> result;
  handle<node> it;  // one of the two
  handle<witness> voter;
  [[nodiscard]] caf::actor untyped() const { return it ? it.untyped() : voter.untyped(); }
  [[nodiscard]] int exit_code() const { return result ? result->exit_code : -1; }
  [[nodiscard]] std::string error() const { return result ? result->error : "(has not ended)"; }
  [[nodiscard]] std::string shown_stage() const {
    return view->read([](const auto& s) { return s.words(); });
  }
};

class node_rig {
 public:
  test::sim sim;
  scratch_folder folder;
  std::shared_ptr<fake_wiring> wiring = std::make_shared<fake_wiring>();
  std::vector<std::unique_ptr<one_node>> nodes;
  std::set<std::size_t> killed;  // of them
  std::string more_solver;       // added to the solver's text
  std::string net = node_test_net;
  std::uint64_t clocks = 4;
  std::uint32_t survive = 0;
  bool zeroes_lost_state = false;
  bool listens = true;  // the first node
  bool shows = false;   // the run's page is on the first node
  std::chrono::milliseconds progress_limit{std::chrono::minutes{10}};
  route_option routes{route_option::kind::server, "", {}};
  std::filesystem::path resume;  // .solverstate that training begins with; empty: none
  view_schedule views;           // as of --views; empty: none
  std::optional<batch_rule> global_batch;

  node_rig() = default;
  ~node_rig() {
    for (auto& n : nodes)
      if (!n->result) caf::anon_send_exit(n->untyped(), caf::exit_reason::user_shutdown);
    sim.settle();
    wiring->hosts.clear();  // they refer to nodes, which refer to the wiring
  }

  /// A node of this setup, on the simulated network.
  one_node& begin(node_setup s, host_port address) {
    auto& n = *nodes.emplace_back(std::make_unique<one_node>());
    n.at = to_string(address);
    n.network = std::make_shared<fake_network>(wiring, std::move(address));
    s.node.compute = make_cpu_device();
    s.node.replicas = 1;
    s.node.readers = 1;
    s.cluster.network = n.network;
    s.cluster.progress_limit = progress_limit;
    s.display = n.display;
    s.ended = [&n](node_result r) { n.result = std::move(r); };
    prepare(s);
    n.view = s.records.view;
    if (s.cluster.as_witness) {
      n.voter = sim.add<witness>("witness", std::move(s));
      sim.tell(n.voter, start_node{});
    } else {
      n.it = sim.add<node>("node", std::move(s));
      sim.tell(n.it, start_node{});
    }
    return n;
  }
  /// Worker 0 of `workers`, told to start, which it has not done yet.
  one_node& first(std::size_t workers) {
    ::caffe::SolverParameter solver;
    const auto text =
        "base_lr: 0.05 lr_policy: 'fixed' momentum: 0.9 max_iter: " + std::to_string(clocks) +
        " snapshot_prefix: '" + (folder / "s").string() + "' " + more_solver;
    REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &solver));
    REQUIRE(google::protobuf::TextFormat::ParseFromString(net, solver.mutable_net_param()));
    node_setup s;
    s.run.emplace();
    s.run->solver = resolve_solver(solver, {"test", 0});
    s.run->workers = workers;
    s.run->survive = survive;
    s.run->zeroes_lost_state = zeroes_lost_state;
    if (!resume.empty()) {
      const auto head = read_resume_point(resume);
      s.run->first_clock = head.iteration;
      s.run->data = head.data;
      s.first.weights = {weights_beside(resume, head.learned_net)};
      s.first.global_batch = head.global_batch;
      s.first.resume = resume;
    }
    s.records.shows = shows;
    if (listens) s.cluster.listen = host_port{"a", 7600};
    s.choices.routes = routes;
    s.choices.views = views;
    s.choices.by_schedule = !views.empty();
    s.choices.global_batch = global_batch;
    s.command = "poseidon-node --solver s --nodes " + std::to_string(workers);
    return begin(std::move(s), {"a", 7600});
  }
  /// It dials the nodes on the hosts `at`, one after the other.
  one_node& joiner(const std::string& host, const std::vector<std::string>& at = {"a"},
                   std::optional<batch_rule> rule = std::nullopt) {
    node_setup s;
    s.choices.global_batch = rule;
    for (const auto& h : at) s.cluster.join.push_back({h, 7600});
    return begin(std::move(s), {host, 7600});
  }
  /// A node that votes and trains nothing.
  one_node& witness_at(const std::string& host, const std::vector<std::string>& at = {"a"}) {
    node_setup s;
    s.cluster.as_witness = true;
    for (const auto& h : at) s.cluster.join.push_back({h, 7600});
    return begin(std::move(s), {host, 7600});
  }
  /// Worker 0 and so many joiners, which have found each other when the first message of training is under way.
  void cluster(std::size_t workers) {
    first(workers);
    sim.settle();
    for (std::size_t w = 1; w < workers; ++w) {
      joiner(std::string(1, static_cast<char>('a' + w)));
      while (!nodes.front()->display->said("worker " + std::to_string(w) + " joined") &&
             sim.step()) {
      }
    }
  }
  /// The node's process is killed: its connections end without a word.
  void kill(std::size_t n) {
    killed.insert(n);
    wiring->cut_off(nodes[n]->at);
    caf::anon_send_exit(nodes[n]->untyped(), caf::exit_reason::kill);
  }
  void interrupt(std::size_t n, interrupted what) {
    nodes[n]->it ? sim.tell(nodes[n]->it, what) : sim.tell(nodes[n]->voter, what);
  }
  /// As its program does where the others have gone on without a node: it joins them, from a host of this name.
  one_node& come_back(std::size_t n, const std::string& host) {
    std::vector<std::string> at;
    for (const auto& other : nodes[n]->result->others) at.push_back(other.host);
    return nodes[n]->it ? joiner(host, at) : witness_at(host, at);
  }
  /// Whether a view with the node has begun, as far as any node has told its user. Its number alone does not tell: a leader that is
  /// lost may have given the same one to another newcomer.
  [[nodiscard]] bool has_joined(std::size_t n) const {
    for (const auto& by : nodes)
      for (const auto& v : by->display->views)
        for (const auto seat : v.seats)
          if (nodes[n]->display->said("joined: worker " + std::to_string(seat) + " of "))
            return true;
    return false;
  }
  /// From now on lines stall for a while, one after the other: what a node says on one of them comes long after what others say. And
  /// seconds pass, in which the leader asks the others what its page shows.
  void stall_lines(std::uint32_t seed) { stalls_.emplace(seed); }
  /// At most so many messages, each of an actor that is drawn.
  void some_turns(std::mt19937& random, std::size_t most) {
    for (auto n = random() % most; n > 0 && sim.step_any(random); --n)
      if (stalls_ && n % 32 == 0) stall_another_line();
  }
  /// All that were not killed.
  [[nodiscard]] bool all_ended() const {
    for (std::size_t n = 0; n < nodes.size(); ++n)
      if (!killed.contains(n) && !nodes[n]->result) return false;
    return true;
  }
  /// Runs in random order, with the passing of time, until the nodes that live have ended, or a minute has passed.
  void go_on_anyhow(std::mt19937& random) {
    for (int ticks = 0; ticks < 3000 && !all_ended(); ++ticks) {
      wiring->close_unaccepted();
      for (int i = 0; i < 2000 && sim.step_any(random); ++i)
        if (stalls_ && i % 128 == 0) stall_another_line();
      go_on_everywhere();
      sim.pass(std::chrono::milliseconds{20});
    }
  }
  /// How each node has ended, and what it said last, for who reads why a test has failed.
  [[nodiscard]] std::string ends() const {
    std::string out;
    for (std::size_t n = 0; n < nodes.size(); ++n)
      out += "\nnode " + std::to_string(n) + " (" + nodes[n]->at +
             "): " + (killed.contains(n) ? "killed" : nodes[n]->error()) + ", exit code " +
             std::to_string(nodes[n]->exit_code()) + nodes[n]->display->last_lines();
    return out;
  }
  /// Runs until `reached` holds or no actor has a message.
  bool until(const std::function<bool()>& reached) {
    while (!reached())
      if (!sim.step()) return reached();
    return true;
  }
  /// Lets the nodes look whether they get on, until all but `except` have ended; false: one still runs after a minute.
  bool until_ended(std::size_t except = ~std::size_t{0}) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes{1};
    const auto ended = [&] {
      for (std::size_t n = 0; n < nodes.size(); ++n)
        if (n != except && !nodes[n]->result) return false;
      return true;
    };
    while (!ended()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      sim.advance(std::chrono::seconds{5});
    }
    return true;
  }
  bool until_clock(std::uint64_t clock, std::size_t of = 0) {
    return until([&] { return nodes[of]->display->done >= clock; });
  }
  bool until_said(std::size_t by, const std::string& part) {
    return until([&] { return nodes[by]->display->said(part); });
  }
  /// What was trained in `clock` clocks, as the leader has written it.
  [[nodiscard]] std::string weights(std::uint64_t clock) const {
    return bytes_of(folder / ("s_iter_" + std::to_string(clock) + ".caffemodel"));
  }
  [[nodiscard]] std::filesystem::path state(std::uint64_t clock) const {
    return folder / ("s_iter_" + std::to_string(clock) + ".solverstate");
  }

 private:
  std::optional<std::mt19937> stalls_;

  void go_on_everywhere() {
    for (const auto& l : wiring->lines)
      for (const int side : {0, 1}) l->go_on(side);
  }
  /// At most a few stall at a time, and each of them goes on in the end.
  void stall_another_line() {
    auto& draw = *stalls_;
    if (draw() % 8 == 0) go_on_everywhere();
    if (draw() % 16 == 0) sim.pass(std::chrono::seconds{1});
    if (wiring->lines.empty()) return;
    wiring->lines[draw() % wiring->lines.size()]->stall(static_cast<int>(draw() % 2));
  }
};

}  // namespace poseidon::test
