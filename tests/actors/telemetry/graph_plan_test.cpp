// tests/actors/telemetry/graph_plan_test.cpp - the planned graph has the actors that a node runs, and no
// others.
#include "actors/telemetry/graph_plan.hpp"

#include "actors/core/actor.hpp"
#include "actors/every_actor.hpp"
#include "actors/telemetry/graph_text.hpp"
#include "models/plan/keepers.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace poseidon;

namespace {

struct ping {};
struct pong {};
struct lost {};
struct asker {
  static constexpr const char* type_name = "asker";
  using accepts = messages<pong>;
  using sends = messages<ping, lost>;
};
struct answerer {
  static constexpr const char* type_name = "answerer";
  using accepts = messages<ping>;
  using sends = messages<pong>;
};

/// A net by hand: net_builder is somebody else's test.
struct net_writer {
  net n;

  std::size_t blob(const std::string& name, shape s) {
    n.blobs.push_back({name, std::move(s)});
    return n.blobs.size() - 1;
  }
  void layer(const std::string& name, const std::string& type, std::vector<std::size_t> bottoms,
             std::vector<std::size_t> tops, bool diff = true) {
    net_layer l;
    l.name = name;
    l.type = type;
    l.bottoms = std::move(bottoms);
    l.tops = std::move(tops);
    l.propagate_down.assign(l.bottoms.size(), diff);
    n.layers.push_back(std::move(l));
  }
  void parameter(shape s) {
    net_parameter p;
    p.layer = n.layers.size() - 1;
    p.shape = std::move(s);
    n.layers.back().parameters.push_back(n.parameters.size());
    n.layers.back().learn.push_back(true);
    n.layers.back().needs_backward = true;
    n.parameters.push_back(std::move(p));
  }
};

/// data -> fc1 -> relu (in place) -> inception/fc2 -> loss
net small_net() {
  net_writer w;
  w.n.name = "small";
  const auto data = w.blob("data", {64, 1, 4, 4});
  const auto label = w.blob("label", {64});
  const auto hidden = w.blob("hidden", {64, 8});
  const auto scores = w.blob("scores", {64, 10});
  const auto loss = w.blob("loss", {});
  w.layer("data", "Data", {}, {data, label});
  w.layer("fc1", "InnerProduct", {data}, {hidden}, false);
  w.parameter({8, 16});
  w.parameter({8});
  w.layer("relu", "ReLU", {hidden}, {hidden});
  w.layer("inception/fc2", "InnerProduct", {hidden}, {scores});
  w.parameter({10, 8});
  w.layer("loss", "SoftmaxWithLoss", {scores, label}, {loss});
  w.n.layers.back().propagate_down = {true, false};
  w.n.outputs = {loss};
  return w.n;
}

/// One chunk per parameter, dealt to the owners in turn.
partition dealt(const net& n, std::size_t shards) {
  partition p;
  p.by_parameter.resize(n.parameters.size());
  p.by_owner.resize(shards);
  for (std::size_t i = 0; i < n.parameters.size(); ++i) {
    const auto parameter = as_id<parameter_id>(i);
    const auto owner = as_id<worker_id>(i % shards);
    const auto values = static_cast<std::size_t>(count(n.parameters[i].shape));
    const auto id = p.chunks.push_back({parameter, 0, values, owner});
    p.by_parameter[parameter].push_back(id);
    p.by_owner[owner].push_back(id);
  }
  return p;
}

std::set<std::string> names(const actor_graph& g) {
  std::set<std::string> out;
  for (const auto& a : g.actors) out.insert(a.name);
  REQUIRE(out.size() == g.actors.size());  // names are unique in a node
  return out;
}

std::vector<std::string> edges(const actor_graph& g, actor_graph::edge_kind kind) {
  std::vector<std::string> out;
  for (const auto& e : g.edges)
    if (e.kind == kind)
      out.push_back(g.actors[e.src].name + " " + e.message + " " + g.actors[e.dst].name + " " +
                    std::to_string(e.bytes));
  return out;
}

}  // namespace

TEST_CASE("type graph: an edge is drawn exactly where one actor sends what another accepts") {
  CHECK(to_mermaid(describe(actor_list<asker, answerer>{})) ==
        "flowchart LR\n"
        "  answerer\n"
        "  asker\n"
        "  answerer -- \"pong\" --> asker\n"
        "  asker -- \"ping\" --> answerer\n");
}

TEST_CASE("type graph: a message that no actor accepts is reported") {
  CHECK(unheard(describe(actor_list<asker, answerer>{})) ==
        std::vector<std::string>{"asker sends lost"});
}

TEST_CASE("type graph: whatever an actor of Poseidon sends, some actor of Poseidon accepts") {
  CHECK(unheard(describe(every_actor{})) == std::vector<std::string>{});
}

TEST_CASE("plan: every planned edge carries a message that its ends declare") {
  const auto n = small_net();
  const auto types = describe(every_actor{});
  auto type = [&](const std::string& kind) {
    const auto at =
        std::find_if(types.begin(), types.end(), [&](auto& t) { return t.name == kind; });
    REQUIRE_MESSAGE(at != types.end(), "no actor class is called ", kind);
    return *at;
  };
  auto lists = [](const std::vector<std::string_view>& names, const std::string& m) {
    return std::find(names.begin(), names.end(), m) != names.end();
  };
  const auto g = plan_graph(n, dealt(n, 2), {2, 2, 0}, std::span(&n, 1));
  for (const auto& e : g.edges) {
    CAPTURE(g.actors[e.src].name);
    CAPTURE(g.actors[e.dst].name);
    CAPTURE(e.message);
    CHECK(lists(type(g.actors[e.src].kind).sends, e.message));
    CHECK(lists(type(g.actors[e.dst].kind).accepts, e.message));
  }
}

TEST_CASE("plan: one node alone has no links, no acceptor and no protocol_selector") {
  const auto n = small_net();
  CHECK(names(plan_graph(n, dealt(n, 1), {1, 1, 0})) ==
        std::set<std::string>{"node", "solver", "stream compute [0]", "server_shard",
                              "checkpointer", "telemetry", "data_source data [0]", "layer data [0]",
                              "layer fc1 [0]", "layer relu [0]", "layer inception/fc2 [0]",
                              "layer loss [0]", "gradient_push fc1",
                              "gradient_push inception/fc2"});
}

TEST_CASE(
    "plan: every replica has its layers, stream and data source; a node has one push per layer") {
  const auto n = small_net();
  const auto g = plan_graph(n, dealt(n, 1), {1, 3, 0});
  const auto all = names(g);
  for (const auto* each : {"stream compute", "data_source data", "layer fc1", "layer loss"})
    for (const auto* r : {" [0]", " [1]", " [2]"}) CHECK(all.count(std::string(each) + r) == 1);
  CHECK(std::count_if(g.actors.begin(), g.actors.end(),
                      [](auto& a) { return a.kind == "gradient_push"; }) == 2);
}

TEST_CASE("plan: every layer that is a source has a data source, whatever its type") {
  for (const std::string type : {"Data", "Input", "MemoryData", "DummyData", "HDF5Data"}) {
    CAPTURE(type);
    auto n = small_net();
    n.layers[0].type = type;
    REQUIRE(is_source(n.layers[0]));
    CHECK(names(plan_graph(n, dealt(n, 1), {1, 1, 0})).count("data_source data [0]") == 1);
  }
}

TEST_CASE("plan: links lead to every other worker, and only worker 0 has the protocol_selector") {
  const auto n = small_net();
  const auto first = names(plan_graph(n, dealt(n, 3), {3, 1, 0}));
  CHECK(first.count("network_link 0") == 0);
  CHECK(first.count("network_link 1") == 1);
  CHECK(first.count("network_link 2") == 1);
  CHECK(first.count("network_link 2 in") == 1);
  CHECK(first.count("protocol_selector") == 1);
  const auto last = names(plan_graph(n, dealt(n, 3), {3, 1, 2}));
  CHECK(last.count("network_link 0") == 1);
  CHECK(last.count("network_link 2") == 0);
  CHECK(last.count("protocol_selector") == 0);
}

TEST_CASE("plan: gradients go to the owners of their chunks, with the bytes of those chunks") {
  const auto n = small_net();  // parameters of 128, 8 and 80 values, owned by workers 0, 1, 0
  const auto g = plan_graph(n, dealt(n, 2), {2, 1, 0});
  CHECK(edges(g, actor_graph::edge_kind::push) ==
        std::vector<std::string>{"gradient_push fc1 gradient_arrived server_shard 512",
                                 "gradient_push fc1 send_frame network_link 1 32",
                                 "gradient_push inception/fc2 gradient_arrived server_shard 320"});
}

TEST_CASE("plan: diffs flow against the data, and not to a layer whose bottom needs none") {
  const auto n = small_net();
  const auto g = plan_graph(n, dealt(n, 1), {1, 1, 0});
  CHECK(edges(g, actor_graph::edge_kind::data) ==
        std::vector<std::string>{"data_source data [0] batch_ready layer data [0] 0",
                                 "layer data [0] bottom_ready layer fc1 [0] 4096",
                                 "layer fc1 [0] bottom_ready layer relu [0] 2048",
                                 "layer relu [0] bottom_ready layer inception/fc2 [0] 2048",
                                 "layer inception/fc2 [0] bottom_ready layer loss [0] 2560",
                                 "layer data [0] bottom_ready layer loss [0] 256"});
  const auto grads = edges(g, actor_graph::edge_kind::grad);
  CHECK(std::count(grads.begin(), grads.end(),
                   "layer relu [0] top_diff_ready layer fc1 [0] 2048") == 1);
  for (const auto& e : grads) CHECK(e.find("top_diff_ready layer data") == std::string::npos);
}

TEST_CASE("plan: in-place followers and helpers share the card of the layer that they serve") {
  const auto n = small_net();
  const auto g = plan_graph(n, dealt(n, 1), {1, 1, 0});
  for (const auto& a : g.actors) {
    if (a.name == "layer relu [0]" || a.name == "gradient_push fc1") CHECK(a.card == "fc1");
    if (a.name == "data_source data [0]") CHECK(a.card == "data");
    if (a.name == "layer inception/fc2 [0]") CHECK(a.group == "inception");
    if (a.name == "server_shard") CHECK(a.card.empty());
  }
}

TEST_CASE("plan: test nets are layers of their own, with their own names and no gradients") {
  const auto n = small_net();
  auto test = small_net();
  test.phase = ::caffe::TEST;
  const auto g = plan_graph(n, dealt(n, 1), {1, 1, 0}, std::span(&test, 1));
  CHECK(names(g).count("test layer fc1 [0]") == 1);
  CHECK(names(g).count("test data_source data [0]") == 1);
  CHECK(names(g).count("gradient_push fc1") == 1);
  for (const auto& e : edges(g, actor_graph::edge_kind::grad))
    CHECK(e.find("test") == std::string::npos);
}

TEST_CASE("plan: a partition of another cluster is refused with both numbers") {
  const auto n = small_net();
  CHECK_THROWS_WITH_AS(plan_graph(n, dealt(n, 2), {4, 1, 0}),
                       "plan_graph: the partition is of 3 parameters over 2 shards, the net has 3 "
                       "and the cluster 4 nodes: "
                       "make_partition(net, nodes)",
                       std::invalid_argument);
  CHECK_THROWS_AS(plan_graph(n, dealt(n, 2), {2, 1, 2}), std::invalid_argument);
}

TEST_CASE("text: names with quotes and markup cannot break DOT or JSON") {
  auto n = small_net();
  n.name = "a \"net\" <b> & \\ \n";
  const auto g = plan_graph(n, dealt(n, 1), {1, 1, 0});
  CHECK(to_json(g).find(R"("model":"a \"net\" <b> & \\ \u000a")") != std::string::npos);
  CHECK(to_dot(g).find("<b>a &quot;net&quot; &lt;b&gt; &amp;") != std::string::npos);
}

TEST_CASE(
    "plan: what a node keeps for another one reaches the keeper, and fresh values from there") {
  const auto n = small_net();
  auto cut = dealt(n, 2);
  const auto fresh_from = [&](const std::string& from) {
    const auto g = plan_graph(n, cut, {2, 1, 0});
    return std::count_if(g.edges.begin(), g.edges.end(), [&](const auto& e) {
      return (e.message == "chunk_landed" || e.message == "chunk_fresh") &&
             g.actors[e.src].kind == from;
    });
  };
  CHECK(names(plan_graph(n, cut, {2, 1, 0})).count("state_keeper") == 0);
  CHECK(fresh_from("network_link") > 0);
  set_keepers(cut, n.parameters, 1);
  CHECK(names(plan_graph(n, cut, {2, 1, 0})).count("state_keeper") == 1);
  CHECK(fresh_from("network_link") == 0);
  CHECK(fresh_from("state_keeper") > 0);
}
