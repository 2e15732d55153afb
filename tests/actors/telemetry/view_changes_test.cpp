// What a node's page holds of actors that come and go: graphs that are built again, and links of nodes that join and leave.
#include "messages/wire/codec.hpp"
#include "tests/actors/telemetry/view_rig.hpp"

#include <doctest/doctest.h>

#include <utility>

using namespace poseidon;
using test::two_workers;
using test::view_of;
using test::view_rig;

namespace {

constexpr const char* message_sent = "bottom_ready";

}  // namespace

TEST_CASE(
    "cluster_view: a thousand actors of one name leave one table, and each name means one actor") {
  view_rig r;
  r.view.begin(two_workers(0));
  const auto solver = r.actor("solver", 1);
  for (std::uint64_t id = 2; id < 1002; ++id) {
    auto table =
        r.actor((id % 2 == 0 ? "layer even " : "layer odd  ") + std::to_string(id % 10), id);
    table->count(1, message_sent, 5);
    table->end();
    r.view.sample();
  }
  CHECK(r.edges->tables().size() == 1);
  CHECK(r.edges->rows().size() == 10);
  r.view.read([](const auto& s) {
    const auto& w = view_of(s, 0);
    REQUIRE(w.graph.actors.size() == 11);
    for (std::size_t i = 1; i < w.graph.actors.size(); ++i)
      CHECK(w.graph.actors[i].name ==
            ((i + 1) % 2 == 0 ? "layer even " : "layer odd  ") + std::to_string((i + 1) % 10));
    CHECK(w.graph.actors[0].sent == 1000);
    CHECK(w.graph.edges.size() == 10);
    return 0;
  });
}

namespace {

/// A graph that is built again and again: a solver that lasts, and layers that do not.
struct rebuilt_node : view_rig {
  std::shared_ptr<edge_table> solver = actor("solver", 1);
  std::shared_ptr<edge_table> conv, loss;
  std::uint64_t next_id = 2;

  /// Every actor sends; conv1 ends with a message that it has not handled.
  void build_and_train() {
    const auto conv_id = next_id++, loss_id = next_id++;
    conv = actor("layer conv1 [0]", conv_id);
    loss = actor("layer loss [0]", loss_id);
    solver->count(conv_id, "start_pass", 0);
    conv->count(loss_id, message_sent, 100);
    conv->handle_one();
    loss->handle_one();
    loss->count(1, "outputs_ready", 8);
    solver->handle_one();
    loss->count(conv_id, "top_diff_ready", 0);
  }
  void end_layers() {
    conv->end();
    loss->end();
  }
  /// A first graph that has been seen, and its end too.
  void train_once(run_facts facts) {
    view.begin(std::move(facts));
    build_and_train();
    view.sample();
    end_layers();
    view.sample();
  }
};

}  // namespace

TEST_CASE("cluster_view: a graph that is rebuilt 100 times has as many actors and edges as one") {
  rebuilt_node there;
  view_rig here;
  here.view.begin(two_workers(0));
  there.view.begin(two_workers(1));
  report_place told;
  const auto pass_on = [&] {
    there.view.sample();
    here.view.take(seat_id{1}, decode_report(*encode_report(there.view.report_since(told))));
  };
  constexpr int rebuilds = 100;
  // Whether the page asks between the end of a graph and the next one, or not.
  bool asks_between = false;
  SUBCASE("seen between the graphs") {
    asks_between = true;
  }
  SUBCASE("seen when the next graph lives") {}
  for (int i = 0; i < rebuilds; ++i) {
    there.build_and_train();
    pass_on();
    there.end_layers();
    if (asks_between) pass_on();
  }
  there.build_and_train();
  pass_on();
  const auto check = [&](const cluster_view::state& s) {
    const auto& g = view_of(s, 1).graph;
    REQUIRE(g.actors.size() == 3);
    CHECK(g.edges.size() == 4);
    for (const auto& a : g.actors) CHECK_FALSE(a.ended);
    CHECK(g.actors[1].name == "layer conv1 [0]");
    CHECK(g.actors[1].handled == 2 * rebuilds + 1);  // what its predecessors had not is gone
    CHECK(g.actors[1].waiting() == 1);
    CHECK(g.actors[2].handled == rebuilds + 1);
    for (const auto& e : g.edges) CHECK(e.messages == rebuilds + 1);
    return 0;
  };
  there.view.read(check);
  here.view.read(check);
  std::size_t edges = 0;  // of an actor that lasts
  (void)there.solver->for_each_since(0, [&](const auto&) { ++edges; });
  CHECK(edges <= 2);
}

TEST_CASE("cluster_view: links of a thousand newcomers take the places of a few, and count anew") {
  view_rig here, there;
  here.view.begin(two_workers(0));
  there.view.begin(two_workers(1));
  const auto node = there.actor("node", 1);
  report_place told;
  const auto pass_on = [&] {
    there.view.sample();
    here.view.take(seat_id{1}, decode_report(*encode_report(there.view.report_since(told))));
  };
  std::shared_ptr<edge_table> link, before;
  for (std::uint64_t seat = 2; seat < 1002; ++seat) {
    before = std::exchange(link, there.actor("network_link " + std::to_string(seat), seat));
    node->count(seat, message_sent, 5);
    link->count(1, "link_bound", 0);
    node->handle_one();
    if (seat % 2 == 0) link->handle_one();
    pass_on();
    if (before) before->end();
    if (seat % 3 == 0) pass_on();
  }
  pass_on();
  for (const auto* view : {&there.view, &here.view})
    view->read([](const auto& s) {
      const auto& g = view_of(s, 1).graph;
      CHECK(g.actors.size() <= 4);
      CHECK(g.edges.size() <= 6);
      std::size_t living = 0;
      for (std::size_t i = 1; i < g.actors.size(); ++i) {
        if (g.actors[i].ended) continue;
        ++living;
        CHECK(g.actors[i].name == "network_link 1001");
        CHECK(g.actors[i].handled == 0);
        CHECK(g.actors[i].waiting() == 1);
        for (const auto& e : g.edges)
          if (e.to == i) CHECK(e.messages == 1);
      }
      CHECK(living == 1);
      CHECK(g.actors[0].handled == 1000);
      CHECK(g.actors[0].sent == 1000);
      return 0;
    });
}

TEST_CASE("cluster_view: an actor that has ended is not shown until another one has its name") {
  rebuilt_node r;
  r.train_once(two_workers(0));
  const auto shown = [&] {
    return r.view.read([](const auto& s) {
      const auto& g = view_of(s, 0).graph;
      return std::pair{!g.actors.at(1).ended, g.revision};
    });
  };
  const auto ended = shown();
  CHECK_FALSE(ended.first);
  r.build_and_train();
  r.view.sample();
  const auto again = shown();
  CHECK(again.first);
  CHECK(again.second > ended.second);
}

TEST_CASE(
    "cluster_view: a message counted after its receiver's end does not wait in its successor") {
  rebuilt_node r;
  r.train_once(two_workers(0));
  r.solver->count(2, "start_pass", 0);  // conv1 was the second actor
  r.build_and_train();
  r.view.sample();
  r.view.sample();
  r.view.read([](const auto& s) {
    CHECK(view_of(s, 0).graph.actors.at(1).waiting() == 1);
    return 0;
  });
}
