#include "apps/web/view_json.hpp"

#include "messages/wire/codec.hpp"
#include "tests/actors/telemetry/view_rig.hpp"

#include <doctest/doctest.h>

using namespace poseidon;
using test::two_workers;
using test::view_rig;

namespace {

constexpr const char* message = "bottom_ready";

}  // namespace

TEST_CASE("tick_json: has the actors and edges that have changed since the last one") {
  view_rig r;
  const auto a = r.actor("layer conv1 [0]", 11), b = r.actor("stream compute [0]", 12);
  r.view.begin(two_workers(0));
  for (int i = 0; i < 5; ++i) a->count(12, message, 100);
  b->handle_one();
  b->handle_one();
  r.view.sample();
  std::uint64_t since = 0;
  CHECK(tick_json(r.view, 0, since).find("\"n\":[[0,0,0],[1,3,2]],\"e\":[[0,5,500]]") !=
        std::string::npos);
  r.view.sample();
  CHECK(tick_json(r.view, 0, since).find("\"n\":[],\"e\":[]") != std::string::npos);
}

TEST_CASE(
    "graph_json: an actor that has ended is not shown; the next of its name adds to its counts") {
  view_rig there, here;
  here.view.begin(two_workers(0));
  there.view.begin(two_workers(1));
  report_place told;
  auto pass_on = [&] {
    there.view.sample();
    here.view.take(seat_id{1}, decode_report(*encode_report(there.view.report_since(told))));
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
  pass_on();
  for (const auto* r : {&there, &here})
    CHECK(graph_json(r->view, 1).find("gradient_push ip1") == std::string::npos);
  const auto second = push(2);
  pass_on();
  pass_on();
  for (const auto* r : {&there, &here}) {
    const auto graph = graph_json(r->view, 1);
    CHECK(graph.find("{\"id\":0,\"name\":\"network_link 0\"") != std::string::npos);
    CHECK(graph.find("{\"id\":1,\"name\":\"gradient_push ip1\"") != std::string::npos);
    CHECK(graph.find("\"id\":2") == std::string::npos);
    CHECK(graph.find("\"id\":0,\"src\":1,\"dst\":0") != std::string::npos);
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
    CHECK(graph_json(r->view, 1).find("\"id\":0,\"src\":1,\"dst\":0") != std::string::npos);
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

TEST_CASE("status_text, status_json: a test phase under way says how far it is") {
  view_rig r;
  auto facts = two_workers(0);
  facts.model = "small";
  facts.last_clock = 10000;
  facts.promise = "results: bit-equal to one node with iter_size 2";
  r.view.begin(std::move(facts));
  CHECK(r.view.stands_at(node_stage::training));
  CHECK(status_json(r.view).starts_with("{\"stage\":\"training\",\"why\":null,"));
  CHECK(status_text(r.view).find("\nresults: bit-equal to one node with iter_size 2\n") !=
        std::string::npos);
  CHECK(status_json(r.view).find("\"results\":\"results: bit-equal to one node") !=
        std::string::npos);
  CHECK(status_json(r.view).find("\"testing\":null,\"testing_total\":null") != std::string::npos);
  long_task task{"testing", 1000, [] { return std::uint64_t{312}; }};
  task.training_pauses = true;
  auto testing = r.history->working(task);
  CHECK(status_text(r.view).starts_with("small, training: testing 312/1000\n"));
  progress::iteration i;
  i.clock = 393;
  i.last_clock = 10000;
  i.loss = 0.5;
  r.history->trained(i, {});
  CHECK(status_text(r.view).starts_with(
      "small, training: iteration 393 of 10000, loss 0.5, 0 images/s, testing 312/1000\n"));
  CHECK(status_json(r.view).find("\"testing\":312,\"testing_total\":1000") != std::string::npos);
  testing.reset();
  CHECK(status_text(r.view).starts_with(
      "small, training: iteration 393 of 10000, loss 0.5, 0 images/s\n"));
}

TEST_CASE("status_text: what was sent does not count the probes of links") {
  view_rig there, here;
  here.view.begin(two_workers(0));
  there.view.begin(two_workers(1));
  const auto counters_of = [](view_rig& r, std::uint32_t peer) {
    const auto counters = std::make_shared<link_counters>();
    r.view.own().opened(peer, counters);
    return counters;
  };
  const auto link = here.actor("network_link 1", 3);
  const auto selector = here.actor("protocol_selector", 1), push = here.actor("gradient_push a", 2);
  selector->count(3, "send_frame", 16'000'000);
  push->count(3, "send_frame", 2'000'000);
  counters_of(here, 1)->bytes_out = 18'000'000;
  counters_of(there, 0)->bytes_in = 18'000'000;
  here.view.sample();
  there.view.sample();
  report_place told;
  here.view.take(seat_id{1}, decode_report(*encode_report(there.view.report_since(told))));
  const auto said = status_text(here.view);
  CHECK(said.find("sent 2.0 MB, received 0.0 MB (and 16.0 MB of probes)") != std::string::npos);
  CHECK(said.find("sent 0.0 MB, received 2.0 MB (and 16.0 MB of probes)") != std::string::npos);
  CHECK(status_json(here.view).find("\"bytes_out\":18000000,\"bytes_in\":0,"
                                    "\"probe_bytes_out\":16000000,\"probe_bytes_in\":0") !=
        std::string::npos);
}

TEST_CASE("members_text, members_json, tick_json: a witness is named beside the members") {
  view_rig r;
  auto facts = two_workers(0);
  r.view.begin(facts);
  std::uint64_t since = 0;
  CHECK(members_text(r.view).starts_with("view 0: 2 nodes, worker 0 leads\n"));
  CHECK(members_json(r.view).find("witness") == std::string::npos);
  CHECK(tick_json(r.view, 0, since).find("witness") == std::string::npos);
  facts.epoch = 2;
  facts.witnesses = {{2, "c:3"}};
  r.view.begin(facts);
  CHECK(members_text(r.view).starts_with("view 2: 2 nodes and 1 witness, worker 0 leads\n"));
  CHECK(members_text(r.view).ends_with("\nwitness 2  c:3                      votes\n"));
  const std::string named = "\"witnesses\":[{\"witness\":2,\"address\":\"c:3\"}]";
  CHECK(members_json(r.view).find(named) != std::string::npos);
  CHECK(tick_json(r.view, 0, since).find(named) != std::string::npos);
}
