// tests/actors/sim_cluster.hpp
//
// A whole cluster in one simulated scheduler: every node's training graph with real kernels, and links that delay
// frames. A seeded generator draws the actor that runs next and the link that delivers, so each seed is another order of
// all events that can happen in another order.
#pragma once
#include "actors/links/frame_queue.hpp"
#include "actors/node/training_graph.hpp"
#include "actors/parameters/peer_window.hpp"
#include "actors/run/compile_run.hpp"
#include "actors/run/run_definition.hpp"
#include "actors/run/train_net.hpp"
#include "cpu/cpu_device.hpp"
#include "messages/wire/codec.hpp"
#include "models/solver/solver_file.hpp"
#include "tests/actors/watched_device.hpp"
#include "tests/sim.hpp"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace poseidon::test {
struct deliver {};
}  // namespace poseidon::test
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::test::deliver)

namespace poseidon::test {

/// The receiving end of a simulated link: what its node's link_receiver would have.
struct far_end {
  worker_id from{};
  std::shared_ptr<frame_gate> gate;
  std::shared_ptr<parameter_store> store;
  const training_graph* graph = nullptr;
};

/// One direction between two nodes. It sends in the order of a real link's queue, but late.
class slow_link : public actor<slow_link> {
 public:
  static constexpr const char* type_name = "network_link";
  using accepts = messages<send_frame, deliver>;
  using sends = messages<chunk_landed, gradient_arrived, sum_arrived, squares_arrived,
                         factors_landed, lowrank_landed, control_passed>;

  slow_link(actor_context context, std::shared_ptr<far_end> to, std::mt19937* random,
            unsigned slowness, std::vector<std::string>* faults, std::size_t* bytes)
      : actor<slow_link>(context),
        to_(std::move(to)),
        random_(random),
        slowness_(slowness),
        faults_(faults),
        bytes_(bytes) {}

  void on(const send_frame& m) {
    queue_.push(m);
    std::vector<std::byte> header;
    encode_header(m.header, {}, header);
    *bytes_ += preamble_bytes + header.size() + m.data.bytes.size();
    // Bytes that have been handed to a link must not change before they have arrived.
    sent_.emplace_back(m.data.bytes.data(), m.data.bytes.size(), copy(m.data));
    if (!pumping_) tell_self(deliver{});
    pumping_ = true;
  }

  void on(const deliver&) {
    pumping_ = false;
    if ((*random_)() % slowness_ == 0) deliver_one();
    if (queue_.empty()) return;
    tell_self(deliver{});
    pumping_ = true;
  }

  void ended() { to_.reset(); }

 private:
  static std::vector<std::byte> copy(const payload& p) { return {p.bytes.begin(), p.bytes.end()}; }

  void deliver_one() {
    auto piece = queue_.take();
    if (!piece) return;
    while (!piece->last) piece = queue_.take();
    const auto& frame = piece->of->frame;
    check_bytes(frame);
    try {
      to_->gate->admit(frame.header);
    } catch (const std::exception& e) {
      faults_->push_back(e.what());
      return;
    }
    std::visit([&](const auto& f) { arrive(f, frame.data); }, frame.header);
  }

  void check_bytes(const send_frame& frame) {
    const auto was = std::find_if(sent_.begin(), sent_.end(), [&](const auto& s) {
      return std::get<0>(s) == frame.data.bytes.data() && std::get<1>(s) == frame.data.bytes.size();
    });
    if (std::get<2>(*was) != copy(frame.data))
      faults_->push_back(std::string(kind_name(frame.header)) + " changed before it was sent");
    sent_.erase(was);
  }

  void arrive(const frames::push_gradient& f, const payload& data) {
    tell(port<gradient_arrived>(to_->graph->parameters().shard()),
         gradient_arrived{to_->from, f.chunk, f.clock, owned(data)});
  }
  void arrive(const frames::summed_gradient& f, const payload& data) {
    tell(port<sum_arrived>(to_->graph->parameters().keeper()), sum_arrived{f, owned(data)});
  }
  void arrive(const frames::gradient_squares& f, const payload& data) {
    tell(port<squares_arrived>(to_->graph->parameters().shard()),
         squares_arrived{to_->from, f.clock, owned(data)});
  }
  void arrive(const frames::fresh_parameters& f, const payload& data) {
    land(data, to_->store->at(f.chunk, value(f.version)));
    tell(to_->graph->parameters().receiver_of(to_->store->cut().chunks[f.chunk].parameter),
         chunk_landed{f.chunk, f.version, f.nothing});
  }
  void arrive(const frames::factors& f, const payload& data) {
    const auto& factors = to_->graph->parameters().factors().at(f.layer);
    land(data, factors->piece(f.clock, to_->from, f.rows, f.first));
    tell(to_->graph->parameters().broadcast(f.layer),
         factors_landed{to_->from, f.clock, f.rows, f.first});
  }
  void arrive(const frames::lowrank_factor& f, const payload& data) {
    tell(to_->graph->parameters().lowrank(f.layer),
         lowrank_landed{to_->from, f.clock, f.second, owned(data)});
  }
  void arrive(const frames::worker_report& f, const payload&) {
    tell(to_->graph->the_trainer().control, control_passed{to_->from, f});
  }
  template <class F>
  void arrive(const F& f, const payload&) {
    faults_->push_back("unexpected " + std::string(kind_name(f)));
  }

  static payload owned(const payload& p) {
    auto bytes = std::make_shared<std::vector<std::byte>>(copy(p));
    return {bytes, *bytes};
  }
  static void land(const payload& p, std::span<float> to) {
    std::copy(p.bytes.begin(), p.bytes.end(), std::as_writable_bytes(to).begin());
  }

  std::shared_ptr<far_end> to_;
  std::mt19937* random_;
  unsigned slowness_;  // turns until a frame is delivered, on average
  std::vector<std::string>* faults_;
  std::size_t* bytes_;
  frame_queue queue_;
  std::vector<std::tuple<const std::byte*, std::size_t, std::vector<std::byte>>> sent_;
  bool pumping_ = false;
};

struct sim_options {
  std::string solver, net;  ///< prototxt
  std::size_t workers = 1;
  std::uint32_t replicas = 1;
  unsigned seed = 1;                         ///< of the order of events, not of training
  unsigned slowness = 20;                    ///< of the slowest link
  std::vector<std::string> by_factors = {};  ///< layers on the route factor_broadcast
  bool has_budget = false;                   ///< frames are sent by magnitude
  std::uint32_t survive = 0;                 ///< keepers of each chunk's solver state
  std::vector<std::string> by_lowrank = {};  ///< layers on the route lowrank_4
};

/// Trains to the end in its constructor.
class sim_cluster {
 public:
  explicit sim_cluster(const sim_options& o)
      : random_(o.seed), done_(sim_.listen<training_done>()) {
    for (std::size_t w = 0; w < o.workers; ++w) build(o, w);
    for (std::size_t to = 0; to < o.workers; ++to) connect(o, to);
    begin();
    for (std::size_t step = 0; sim_.step_any(random_); ++step)
      if (o.workers > 1 && step % 8 == 0) check_whole_versions();
  }
  ~sim_cluster() {
    for (auto& n : nodes_)
      for (const auto& a : n->graph->all())
        caf::anon_send(caf::actor_cast<caf::actor>(a.target()), shut_down{});
    sim_.settle();
    done_.got->clear();
  }
  sim_cluster(const sim_cluster&) = delete;
  sim_cluster& operator=(const sim_cluster&) = delete;

  /// What went wrong; empty: nothing.
  [[nodiscard]] const std::vector<std::string>& faults() const { return faults_; }
  [[nodiscard]] const std::vector<training_done>& done() const { return *done_.got; }
  [[nodiscard]] const watch_log& seen(std::size_t worker) const {
    return *nodes_[worker]->device->log;
  }
  [[nodiscard]] parameter_arrays parameters(std::size_t worker, std::uint64_t version) const {
    return nodes_[worker]->run->store->copy(version);
  }
  [[nodiscard]] const parameter_arrays& first_values() const { return first_values_; }
  [[nodiscard]] std::size_t workers() const { return nodes_.size(); }
  /// Bytes of all frames that a simulated link has taken, headers and payloads, as they would lie on the wire.
  [[nodiscard]] std::size_t bytes_sent() const { return bytes_sent_; }
  /// The solver state of a worker's shard and keeper after training, as of this version; the end's if empty. Once.
  [[nodiscard]] std::vector<history_released> release(
      std::size_t worker, std::optional<version_id> version = std::nullopt) {
    auto released = sim_.listen<history_released>();
    for (const auto& from : nodes_[worker]->graph->parameters().histories())
      sim_.tell(from, release_history{released.in, version});
    sim_.settle();
    return *released.got;
  }
  [[nodiscard]] const partition& cut() const { return nodes_.front()->run->store->cut(); }

 private:
  struct one_node {
    run_definition spec;
    std::shared_ptr<watched_device> device;
    node_spec own;
    std::unique_ptr<compiled_run> run;
    edge_book book;
    trace_log trace{false};
    std::unique_ptr<training_graph> graph;
    std::vector<handle<slow_link>> links;  // by receiver; empty at self
  };

  void build(const sim_options& o, std::size_t worker) {
    auto& n = *nodes_.emplace_back(std::make_unique<one_node>());
    ::caffe::SolverParameter solver;
    if (!google::protobuf::TextFormat::ParseFromString(o.solver, &solver) ||
        !google::protobuf::TextFormat::ParseFromString(o.net, solver.mutable_net_param()))
      throw std::invalid_argument("the test's solver or net");
    n.spec.solver = resolve_solver(solver, {"test", 0});
    n.spec.workers = o.workers;
    n.spec.survive = o.survive;
    n.device = std::make_shared<watched_device>(make_cpu_device());
    n.own.compute = n.device;
    n.own.replicas = o.replicas;
    if (o.workers > 1) n.spec.routes = routes_of(n, o);
    n.run = compile_run(n.spec, n.own);
    const auto self = as_id<worker_id>(worker);
    n.graph = std::make_unique<training_graph>(graph_context{.system = sim_.system(),
                                                             .edges = n.book,
                                                             .trace = n.trace,
                                                             .self = self,
                                                             .leader = worker_id{0},
                                                             .has_budget = o.has_budget,
                                                             .display = nullptr,
                                                             .node_stop = {},
                                                             .node_done = done_.in,
                                                             .node_failed = failed_.in},
                                               n.spec, n.own, *n.run);
    for (const auto& a : n.graph->monitored())
      a->attach_functor([this](const caf::error& e) {
        if (e) faults_.push_back(sim_.system().render(e));
      });
  }

  static parameter_routes routes_of(const one_node& n, const sim_options& o) {
    if (o.by_factors.empty() && o.by_lowrank.empty()) return {};
    const auto net = resolve_train_net(n.spec, n.own).part;
    parameter_routes routes(net.parameters.size(), route::parameter_server);
    const auto take = [&](const std::vector<std::string>& layers, route by) {
      for (std::size_t p = 0; p < net.parameters.size(); ++p)
        if (std::count(layers.begin(), layers.end(), net.layers[net.parameters[p].layer].name) > 0)
          routes[as_id<parameter_id>(p)] = by;
    };
    take(o.by_factors, route::factor_broadcast);
    take(o.by_lowrank, route::lowrank_4);
    return routes;
  }

  void connect(const sim_options& o, std::size_t from) {
    auto& n = *nodes_[from];
    n.links.resize(o.workers);
    std::vector<port<send_frame>> ports(o.workers);
    for (std::size_t to = 0; to < o.workers; ++to) {
      if (to == from) continue;
      auto& there = *nodes_[to];
      auto end = std::make_shared<far_end>();
      end->from = as_id<worker_id>(from);
      end->store = there.run->store;
      end->graph = there.graph.get();
      peer_window_setup window{as_id<worker_id>(to),
                               end->from,
                               clock_id{0},
                               {},
                               there.run->store,
                               there.graph->parameters().factors(),
                               staleness_of(there.spec)};
      const auto& net = there.run->train.graph;
      for (std::size_t p = 0; p < net.parameters.size(); ++p)
        window.learned.push_back(is_updated(net, p));
      window.lowrank = there.graph->parameters().turns();
      end->gate = std::make_shared<peer_window>(std::move(window));
      const auto name = "network_link " + std::to_string(from) + " to " + std::to_string(to);
      n.links[to] = sim_.spawn<slow_link>(name, end, &random_,
                                          1 + static_cast<unsigned>(random_() % o.slowness),
                                          &faults_, &bytes_sent_);
      ports[to] = n.links[to];
    }
    n.graph->connect(ports);
  }

  /// As value_sender, for a run in which nobody may be lost.
  void begin() {
    auto& first = *nodes_.front();
    auto& store = *first.run->store;
    write_first_values(first.run->train.graph, first.spec.seed, {}, 0, store);
    first_values_ = store.copy(0);
    for (const auto chunk : store.cut().chunks.ids()) {
      const payload data{first.run->store, std::as_bytes(store.at(chunk, 0))};
      for (std::size_t to = 1; to < nodes_.size(); ++to)
        sim_.tell(first.links[to], send_frame{frames::fresh_parameters{chunk, {}}, data, 0});
      const auto gather =
          first.graph->parameters().receiver_of(store.cut().chunks[chunk].parameter);
      caf::anon_send(caf::actor_cast<caf::actor>(gather.target()), chunk_landed{chunk, {}});
    }
    for (const auto& n : nodes_) sim_.tell(n->graph->the_trainer().begin, begin_training{});
  }

  /// The newest version that a node has of all parameters has the same values on all nodes: the node would write it if it
  /// lost a peer now.
  void check_whole_versions() {
    for (const auto& n : nodes_) {
      const auto& net = n->run->train.graph;
      auto whole = ~std::uint64_t{0};
      for (const auto p : n->run->store->parameters())
        if (is_updated(net, value(p))) whole = std::min(whole, n->run->store->version(p));
      if (whole == 0) continue;
      try {
        const auto values = n->run->store->copy(whole);
        if (whole_.try_emplace(whole, values).first->second != values)
          faults_.push_back("version " + std::to_string(whole) + " is not what it was");
      } catch (const std::exception& e) {
        faults_.push_back(e.what());
      }
    }
  }

  // These two are written to by actors that end with the simulation.
  std::vector<std::string> faults_;
  std::size_t bytes_sent_ = 0;
  sim sim_;
  std::mt19937 random_;
  probe<training_done> done_;
  probe<training_failed> failed_ = sim_.listen<training_failed>();
  parameter_arrays first_values_;
  std::map<std::uint64_t, parameter_arrays> whole_;  // by version
  std::vector<std::unique_ptr<one_node>> nodes_;
};

}  // namespace poseidon::test
