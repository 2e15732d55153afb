#include "actors/telemetry/run_facts.hpp"
#include "messages/wire/codec.hpp"
#include "tests/actors/telemetry/view_rig.hpp"

#include <doctest/doctest.h>

using namespace poseidon;
using test::two_workers;
using test::view_of;
using test::view_rig;

namespace {

constexpr const char* sent_message = "bottom_ready";

}  // namespace

TEST_CASE("cluster_view: shows actors, edges and what waits in mailboxes") {
  view_rig r;
  const auto a = r.actor("layer conv1 [0]", 11), b = r.actor("stream compute [0]", 12);
  r.view.begin(two_workers(0));
  for (int i = 0; i < 5; ++i) a->count(12, sent_message, 100);
  b->handle_one();
  b->handle_one();
  r.view.sample();
  r.view.read([&](const auto& s) {
    const auto& w = view_of(s, 0);
    REQUIRE(w.graph.actors.size() == 2);
    CHECK(w.graph.actors[1].name == "stream compute [0]");
    CHECK(w.graph.actors[1].type == "stream");
    CHECK(w.graph.actors[1].sent == 5);
    CHECK(w.graph.actors[1].handled == 2);
    REQUIRE(w.graph.edges.size() == 1);
    CHECK(w.graph.edges[0].message == sent_message);
    CHECK(w.graph.edges[0].bytes == 500);
    return 0;
  });
}

TEST_CASE("cluster_view: an edge to an actor that is registered later is not forgotten") {
  view_rig r;
  const auto a = r.actor("node", 1);
  a->count(2, sent_message, 7);
  r.view.sample();
  (void)r.actor("solver", 2);
  r.view.sample();
  r.view.read([](const auto& s) {
    REQUIRE(view_of(s, 0).graph.edges.size() == 1);
    CHECK(view_of(s, 0).graph.edges[0].bytes == 7);
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
    here.view.take(seat_id{1}, decode_report(*encode_report(there.view.report_since(told))));
  };
  a->count(2, sent_message, 10);
  pass_on();
  there.view.begin(two_workers(1));  // it learns its number while it is under way
  const auto late = there.actor("telemetry", 3);
  late->count(1, "shut_down", 0);
  a->count(2, sent_message, 10);
  b->handle_one();
  lane->record({"conv1", span_phase::forward, 100, 200, clock++});
  pass_on();
  pass_on();
  lane->record({"conv1", span_phase::forward, 300, 450, clock++});
  pass_on();
  here.view.read([&](const auto& mine) {
    there.view.read([&](const auto& theirs) {
      const auto &got = view_of(mine, 1), &sent = view_of(theirs, 1);
      REQUIRE(got.graph.actors.size() == 3);
      REQUIRE(got.graph.edges.size() == sent.graph.edges.size());
      for (std::size_t i = 0; i < got.graph.edges.size(); ++i) {
        CHECK(got.graph.edges[i].messages == sent.graph.edges[i].messages);
        CHECK(got.graph.edges[i].bytes == sent.graph.edges[i].bytes);
        CHECK(got.graph.edges[i].message == sent.graph.edges[i].message);
      }
      CHECK(got.graph.actors[1].handled == 1);
      CHECK(got.pace.clock == 1);
      CHECK(got.spans.newest.size() == 2);
      CHECK(got.names[got.spans.newest[1].name] == "conv1");
      return 0;
    });
    return 0;
  });
}

TEST_CASE(
    "cluster_view: keeps by layer what has been handed over and what is fresh, and how long "
    "kernels took") {
  view_rig r;
  r.view.begin(two_workers(0));
  auto* stream = r.trace->lane("stream compute [0]");
  auto* push = r.trace->lane("gradient_push conv1");
  stream->record({"conv1", span_phase::forward, 100, 130, 4});
  stream->record({"conv1", span_phase::backward, 130, 200, 4});
  push->record({"conv1", span_phase::exchange, 200, 260, 4});
  stream->record({"conv1", span_phase::stall, 200, 280, 5});
  stream->record({"conv1", span_phase::forward, 280, 300, 5});
  stream->record({"conv1", span_phase::backward, 300, 310, 5});
  r.view.sample();
  r.view.read([](const auto& s) {
    const auto& w = view_of(s, 0);
    CHECK(w.pace.updates.at("conv1").handed_over == 5);
    CHECK(w.pace.updates.at("conv1").fresh == 4);
    CHECK(w.pace.computed_ns == 310);
    REQUIRE(w.pace.busy.size() == 2);
    CHECK(w.pace.busy[0] == std::pair<std::uint64_t, std::int64_t>{4, 100});
    CHECK(w.pace.busy[1] == std::pair<std::uint64_t, std::int64_t>{5, 30});
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
  here.view.take(seat_id{1}, first);
  CHECK_THROWS_WITH_AS(here.view.take(seat_id{1}, first), "report: first name is 0, expected 1",
                       bad_frame);
  node_report bad;
  bad.first_name = 1;
  bad.first_actor = 1;
  bad.names = {"x"};
  bad.ended = {7};
  CHECK_THROWS_WITH_AS(here.view.take(seat_id{1}, bad),
                       "report: ended actor is 7, expected less than 1", bad_frame);
  bad.ended.clear();
  bad.renamed = {{0, 2}};
  CHECK_THROWS_WITH_AS(here.view.take(seat_id{1}, bad), "report: name is 2, expected less than 2",
                       bad_frame);
  bad.renamed.clear();
  bad.counts = {{3, 1, 1}};
  CHECK_THROWS_WITH_AS(here.view.take(seat_id{1}, bad), "report: edge is 3, expected less than 0",
                       bad_frame);
  here.view.read([](const auto& s) {
    CHECK(view_of(s, 1).names.size() == 1);
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
  here.view.take(seat_id{1}, r);
  here.view.read([&](const auto& s) {
    const auto& w = view_of(s, 1);
    CHECK(w.contact.uncertain_ns >= 0);
    const auto wrong = w.spans.newest[0].begin_ns - (now - 5000);
    CHECK(std::abs(wrong) <= w.contact.uncertain_ns);
    return 0;
  });
}

TEST_CASE(
    "keep_reasons: a layer that has moved says since when, the others what they said before") {
  std::vector<run_facts::layer_route> now{{"ip1", "factor_broadcast", "", "other"},
                                          {"ip2", "parameter_server", "", "other"}};
  keep_reasons({{"ip1", "parameter_server", "", "old"}, {"ip2", "parameter_server", "", "kept"}},
               "changed at iteration 7", now);
  CHECK(now[0].why == "changed at iteration 7");
  CHECK(now[1].why == "kept");
}

TEST_CASE(
    "cluster_view: a member that has left is not shown, and what it still reports is dropped") {
  view_rig here, there;
  auto three = two_workers(0);
  three.members[4] = "e:1";
  here.view.begin(three);
  there.view.begin(two_workers(4));
  (void)there.actor("solver", 1);
  report_place told;
  const auto shown = [&] {
    return here.view.read([](const auto& s) {
      std::vector<std::uint32_t> seats;
      for (const auto& [seat, worker] : s.workers) seats.push_back(seat);
      return seats;
    });
  };
  there.view.sample();
  here.view.take(seat_id{4}, decode_report(*encode_report(there.view.report_since(told))));
  CHECK(shown() == std::vector<std::uint32_t>{0, 1, 4});
  here.view.begin(two_workers(0));
  CHECK(shown() == std::vector<std::uint32_t>{0, 1});
  there.view.sample();
  here.view.take(seat_id{4}, decode_report(*encode_report(there.view.report_since(told))));
  CHECK(shown() == std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("cluster_view: facts name members by seat, and their workers by place") {
  auto facts = two_workers(1);
  facts.members = {{1, "b:2"}, {4, "e:1"}};
  CHECK(facts.address_of(4) == "e:1");
  CHECK(facts.address_of(0) == "");
  CHECK(facts.worker_of(4) == 1);
}

TEST_CASE("cluster_view: a run that waits for other nodes says so for as long as it waits") {
  view_rig r;
  const auto shown = [&] { return r.view.read([](const auto& s) { return s.words(); }); };
  r.view.paused("");
  CHECK(shown() == "starting");
  r.view.begin(two_workers(0));
  CHECK(r.view.stands_at(node_stage::training));
  CHECK(!r.view.stands_at(node_stage::training));
  r.view.paused("paused: this node hears 1 of 2");
  CHECK(shown() == "paused: this node hears 1 of 2");
  SUBCASE("until it hears them again") {
    r.view.paused("");
  }
  SUBCASE("until a view without them begins") {
    r.view.begin(two_workers(0));
  }
  CHECK(shown() == "training");
  r.view.ended("");
  r.view.paused("paused: again");
  CHECK(!r.view.stands_at(node_stage::training));
  CHECK(shown() == "ended");
}
