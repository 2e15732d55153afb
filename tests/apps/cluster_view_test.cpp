#include "actors/telemetry/cluster_view.hpp"

#include "actors/telemetry/run_facts.hpp"
#include "apps/web/view_json.hpp"
#include "messages/wire/codec.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {

/// A node that measures itself, without actors.
struct view_rig {
  std::shared_ptr<edge_book> edges = std::make_shared<edge_book>();
  std::shared_ptr<trace_log> trace = std::make_shared<trace_log>(false, true);
  std::shared_ptr<run_history> history = std::make_shared<run_history>(nullptr, 2);
  cluster_view view{edges, trace, history};

  std::shared_ptr<edge_table> actor(const std::string& name, std::uint64_t id) {
    auto table = edges->open(name, name.substr(0, name.find(' ')));
    table->bind(id);
    return table;
  }
};

run_facts two_workers(std::uint32_t self) {
  run_facts f;
  f.self = self;
  f.members = {"a:1", "b:2"};
  f.plan = [](auto, auto) { return actor_graph{}; };
  return f;
}

const worker_view& of(const cluster_view::state& s, std::uint32_t worker) {
  return s.workers.at(worker);
}

constexpr const char* message = "bottom_ready";

}  // namespace

TEST_CASE("cluster_view: shows actors, edges and what waits in mailboxes") {
  view_rig r;
  const auto a = r.actor("layer conv1 [0]", 11), b = r.actor("stream compute [0]", 12);
  r.view.begin(two_workers(0));
  for (int i = 0; i < 5; ++i) a->count(12, message, 100);
  b->handle_one();
  b->handle_one();
  r.view.sample();
  r.view.read([&](const auto& s) {
    const auto& w = of(s, 0);
    REQUIRE(w.actors.size() == 2);
    CHECK(w.actors[1].name == "stream compute [0]");
    CHECK(w.actors[1].type == "stream");
    CHECK(w.actors[1].told == 5);
    CHECK(w.actors[1].handled == 2);
    REQUIRE(w.edges.size() == 1);
    CHECK(w.edges[0].message == message);
    CHECK(w.edges[0].bytes == 500);
    return 0;
  });
  std::uint64_t since = 0;
  CHECK(tick_json(r.view, 0, since).find("\"n\":[[0,0,0],[1,3,2]],\"e\":[[0,5,500]]") !=
        std::string::npos);
  r.view.sample();
  CHECK(tick_json(r.view, 0, since).find("\"n\":[],\"e\":[]") != std::string::npos);
}

TEST_CASE("cluster_view: an edge to an actor that is registered later is not forgotten") {
  view_rig r;
  const auto a = r.actor("node", 1);
  a->count(2, message, 7);
  r.view.sample();
  (void)r.actor("solver", 2);
  r.view.sample();
  r.view.read([](const auto& s) {
    REQUIRE(of(s, 0).edges.size() == 1);
    CHECK(of(s, 0).edges[0].bytes == 7);
    return 0;
  });
}

TEST_CASE("cluster_view: what one node tells in pieces is what the other knows of it") {
  view_rig there, here;
  here.view.begin(two_workers(0));
  const auto a = there.actor("layer a [0]", 1), b = there.actor("solver", 2);
  report_place told;
  auto* lane = there.trace->lane("stream compute [0]");
  std::uint64_t clock = 0;
  auto pass_on = [&] {
    there.view.sample();
    here.view.take(worker_id{1}, decode_report(*encode_report(there.view.report_since(told))));
  };
  a->count(2, message, 10);
  pass_on();
  there.view.begin(two_workers(1));  // it learns its number while it is under way
  const auto late = there.actor("telemetry", 3);
  late->count(1, "shut_down", 0);
  a->count(2, message, 10);
  b->handle_one();
  lane->record({"conv1", "forward", 100, 200, clock++});
  pass_on();
  pass_on();
  lane->record({"conv1", "forward", 300, 450, clock++});
  pass_on();
  here.view.read([&](const auto& mine) {
    there.view.read([&](const auto& theirs) {
      const auto &got = of(mine, 1), &sent = of(theirs, 1);
      REQUIRE(got.actors.size() == 3);
      REQUIRE(got.edges.size() == sent.edges.size());
      for (std::size_t i = 0; i < got.edges.size(); ++i) {
        CHECK(got.edges[i].messages == sent.edges[i].messages);
        CHECK(got.edges[i].bytes == sent.edges[i].bytes);
        CHECK(got.edges[i].message == sent.edges[i].message);
      }
      CHECK(got.actors[1].handled == 1);
      CHECK(got.clock == 1);
      CHECK(got.spans.size() == 2);
      CHECK(got.names[got.spans[1].name] == "conv1");
      return 0;
    });
    return 0;
  });
}

TEST_CASE("cluster_view: an actor that has ended is shown no more, and what it sent still counts") {
  view_rig there, here;
  here.view.begin(two_workers(0));
  there.view.begin(two_workers(1));
  report_place told;
  auto pass_on = [&] {
    there.view.sample();
    here.view.take(worker_id{1}, decode_report(*encode_report(there.view.report_since(told))));
  };
  const auto link = there.actor("network_link 0", 9);
  auto push = [&](std::uint64_t id) {
    auto table = there.actor("gradient_push ip1", id);
    table->count(9, "send_frame", 100);
    return table;
  };
  const auto first = push(1);
  pass_on();
  first->count(9, "send_frame", 20);  // as it leaves
  first->end();
  const auto second = push(2);
  pass_on();
  pass_on();
  for (const auto* r : {&there, &here}) {
    const auto graph = graph_json(r->view, 1);
    CHECK(graph.find("{\"id\":0,\"name\":\"network_link 0\"") != std::string::npos);
    CHECK(graph.find("{\"id\":1,\"name\":\"gradient_push ip1\"") == std::string::npos);
    CHECK(graph.find("{\"id\":2,\"name\":\"gradient_push ip1\"") != std::string::npos);
    CHECK(graph.find("\"id\":0,\"src\":1") == std::string::npos);
    CHECK(graph.find("\"id\":1,\"src\":2,\"dst\":0") != std::string::npos);
    std::uint64_t since = 0;
    const auto tick = tick_json(r->view, 1, since);
    CHECK(tick.find("\"actors\":2,") != std::string::npos);
    CHECK(tick.find("\"edge_bytes_out\":220,") != std::string::npos);
    CHECK(prometheus_text(r->view).find("message=\"send_frame\"} 220\n") != std::string::npos);
  }
  // When the run ends all actors do: who looks then sees the last ones.
  there.view.ended("");
  here.view.ended("");
  second->end();
  link->end();
  pass_on();
  for (const auto* r : {&there, &here})
    CHECK(graph_json(r->view, 1).find("\"id\":1,\"src\":2,\"dst\":0") != std::string::npos);
}

TEST_CASE("edge_book: actors that bore one name are one in what is measured of a run") {
  view_rig r;
  (void)r.actor("solver", 9);
  for (const std::uint64_t id : {1, 2}) r.actor("layer ip1 [0]", id)->count(9, message, 5 * id);
  const auto rows = r.edges->rows();
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].from == "layer ip1 [0]");
  CHECK(rows[0].count == 2);
  CHECK(rows[0].bytes == 15);
  CHECK(r.edges->actors().size() == 2);
}

TEST_CASE(
    "keep_reasons: a layer that has moved says since when, the others what they said before") {
  std::vector<run_facts::layer_route> now{{"ip1", "factor_broadcast", "", "other"},
                                          {"ip2", "parameter_server", "", "other"}};
  keep_reasons({{"ip1", "parameter_server", "", "old"}, {"ip2", "parameter_server", "", "kept"}},
               "changed at clock 7", now);
  CHECK(now[0].why == "changed at clock 7");
  CHECK(now[1].why == "kept");
}

TEST_CASE(
    "cluster_view: keeps by layer what has been handed over and what is fresh, and how long "
    "kernels took") {
  view_rig r;
  r.view.begin(two_workers(0));
  auto* stream = r.trace->lane("stream compute [0]");
  auto* push = r.trace->lane("gradient_push conv1");
  stream->record({"conv1", "forward", 100, 130, 4});
  stream->record({"conv1", "backward", 130, 200, 4});
  push->record({"conv1", "exchange", 200, 260, 4});
  stream->record({"conv1", "stall", 200, 280, 5});
  stream->record({"conv1", "forward", 280, 300, 5});
  stream->record({"conv1", "backward", 300, 310, 5});
  r.view.sample();
  r.view.read([](const auto& s) {
    const auto& w = of(s, 0);
    CHECK(w.updates.at("conv1").handed_over == 5);
    CHECK(w.updates.at("conv1").fresh == 4);
    CHECK(w.computed_ns == 310);
    REQUIRE(w.busy.size() == 2);
    CHECK(w.busy[0] == std::pair<std::uint64_t, std::int64_t>{4, 100});
    CHECK(w.busy[1] == std::pair<std::uint64_t, std::int64_t>{5, 30});
    return 0;
  });
}

TEST_CASE("cluster_view: a report that does not fit counts for nothing") {
  view_rig there, here;
  here.view.begin(two_workers(0));
  (void)there.actor("solver", 1);
  report_place told;
  there.view.sample();
  const auto first = there.view.report_since(told);
  here.view.take(worker_id{1}, first);
  CHECK_THROWS_WITH_AS(here.view.take(worker_id{1}, first), "report: first name is 0, expected 1",
                       bad_frame);
  node_report bad;
  bad.first_name = 1;
  bad.first_actor = 1;
  bad.names = {"x"};
  bad.ended = {7};
  CHECK_THROWS_WITH_AS(here.view.take(worker_id{1}, bad),
                       "report: ended actor is 7, expected less than 1", bad_frame);
  bad.ended.clear();
  bad.counts = {{3, 1, 1}};
  CHECK_THROWS_WITH_AS(here.view.take(worker_id{1}, bad), "report: edge is 3, expected less than 0",
                       bad_frame);
  here.view.read([](const auto& s) {
    CHECK(of(s, 1).names.size() == 1);
    return 0;
  });
}

TEST_CASE("cluster_view: spans of a far node are shown in this node's clock") {
  view_rig here;
  here.view.begin(two_workers(0));
  const auto now = now_ns();
  constexpr std::int64_t ahead = 5'000'000'000;
  node_report r;
  r.asked_ns = now - 1000;  // on the way for next to nothing
  r.heard_ns = now - 800 + ahead;
  r.sent_ns = now - 200 + ahead;
  r.names = {"conv1", "forward"};
  r.lanes = {0};
  r.spans = {{0, 0, 1, -1, now + ahead - 5000, now + ahead - 4000, 3, 0}};
  here.view.take(worker_id{1}, r);
  here.view.read([&](const auto& s) {
    const auto& w = of(s, 1);
    CHECK(w.uncertain_ns >= 0);
    const auto wrong = w.spans[0].begin_ns - (now - 5000);
    CHECK(std::abs(wrong) <= w.uncertain_ns);
    return 0;
  });
}

TEST_CASE("lag_of: workers are compared at one moment, and one that is silent falls behind") {
  std::map<std::uint32_t, worker_view> w;
  constexpr std::int64_t s = 1'000'000'000;
  for (std::uint64_t c = 0; c < 20; ++c) {
    w[0].clocks.emplace_back(static_cast<std::int64_t>(c) * s / 10, c);
    if (c < 16) w[1].clocks.emplace_back(static_cast<std::int64_t>(c) * s / 10, c);
  }
  w[0].known_ns = 2 * s;
  w[1].known_ns =
      3 * s / 2 + s / 20;  // it has told of clock 15, when the other one was there as well
  CHECK(lag_of(w, 1, 2 * s) == 0);
  CHECK(lag_of(w, 0, 2 * s) == 0);
  w[1].clocks.pop_back();
  CHECK(lag_of(w, 1, 2 * s) == 1);
  CHECK(lag_of(w, 1, 9 * s) == 5);
}

TEST_CASE("compare_clocks: half the way is what can be wrong") {
  const auto e = compare_clocks(1000, 51200, 51300, 1500);
  CHECK(e.offset_ns == 50000);
  CHECK(e.uncertain_ns == 200);
}

TEST_CASE("run_history: a late reader finds the whole run, the next one what is new") {
  run_history h(nullptr, 2);
  progress::iteration i;
  i.last_clock = 100;
  i.loss = 2.5;
  i.outputs = {2.25, 0.5};
  h.trained(i, {{"loss", 1}, {"acc", 0}});
  h.tested(0, 0, {0.75}, {{"accuracy", 0}});
  h.note("a \"line\"");
  run_history::place from;
  const auto all = h.json(from);
  CHECK(all.find("\"outputs\":[\"loss\",\"acc\"],\"points\":[[0,") != std::string::npos);
  CHECK(all.find(",2.5,0,0,-1,2.25,0.5]]") != std::string::npos);
  CHECK(all.find("\"names\":[\"accuracy\"],\"means\":[0.75]") != std::string::npos);
  CHECK(all.find("\"a \\\"line\\\"\",0]") != std::string::npos);
  CHECK(h.json(from).empty());
  h.ended("worker 1 is gone");
  CHECK(h.json(from).find("the run has ended: worker 1 is gone\",1]") != std::string::npos);
  CHECK(h.csv().starts_with(
      "NumIters,Seconds,LearningRate,loss,acc,smoothed_loss,images_per_second\n0,"));
}

TEST_CASE("prometheus_text: every line is a comment or a sample with a number") {
  view_rig r;
  const auto a = r.actor("layer \"odd\\name\" [0]", 1);
  (void)r.actor("solver", 2);
  a->count(2, message, 10);
  auto counters = std::make_shared<link_counters>();
  counters->bytes_out = 77;
  r.view.own().opened(1, counters);
  r.view.begin(two_workers(0));
  r.view.sample();
  const auto text = prometheus_text(r.view);
  CHECK(text.find("poseidon_link_sent_bytes_total{worker=\"0\",peer=\"1\"} 77\n") !=
        std::string::npos);
  CHECK(text.find("poseidon_payload_bytes_total{worker=\"0\",from=\"layer\",to=\"solver\","
                  "message=\"bottom_ready\"} 10\n") != std::string::npos);
}
