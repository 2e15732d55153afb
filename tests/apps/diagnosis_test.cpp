#include "apps/web/diagnosis.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {

constexpr std::int64_t s = 1'000'000'000;

/// Workers that have just ended clock 40, all heard of at time 100 s; each clock took them 100 ms.
cluster_view::state running(std::uint32_t workers) {
  cluster_view::state state;
  state.facts.emplace();
  state.facts->routes = {{"conv1", "parameter_server", "float32", ""},
                         {"ip1", "factor_broadcast", "float32", ""}};
  for (std::uint32_t id = 0; id < workers; ++id) {
    auto& w = state.workers[id];
    w.replicas = 1;
    w.pace.clock = 40;
    for (std::uint64_t c = 0; c <= 40; ++c) {
      w.pace.clocks.emplace_back(96 * s + static_cast<std::int64_t>(c) * s / 10, c);
      w.pace.busy.emplace_back(c, s / 20);
    }
    w.contact.heard_ns = w.contact.known_ns = w.pace.computed_ns = 100 * s;
    for (const auto* layer : {"conv1", "ip1"})
      w.pace.updates[layer] = {.handed_over = 40, .fresh = 40};
  }
  return state;
}

/// Reports of `id` come until `t`, and tell of no kernel after the one that ended at 100 s.
void reports_until(cluster_view::state& state, std::uint32_t id, std::int64_t t) {
  state.workers[id].contact.heard_ns = state.workers[id].contact.known_ns = t;
}

void waits_for(cluster_view::state& state, std::uint32_t id, const std::string& layer) {
  state.workers[id].pace.updates[layer] = {.handed_over = 41, .fresh = 40};
}

void add_edge(worker_view& w, const std::string& from, const std::string& to,
              const std::string& message, std::uint64_t messages, std::uint64_t bytes = 0) {
  const auto place = static_cast<std::uint32_t>(w.graph.actors.size());
  w.graph.actors.push_back({from, from.substr(0, from.find(' '))});
  w.graph.actors.push_back({to, to.substr(0, to.find(' '))});
  w.graph.edges.push_back({place, place + 1, message, messages, bytes});
}

}  // namespace

TEST_CASE("diagnose: a run that goes on has no verdict, and neither has one that is over") {
  auto state = running(2);
  CHECK_FALSE(diagnose(state, 100 * s).stall);
  for (const std::uint32_t id : {0, 1}) reports_until(state, id, 105 * s);
  waits_for(state, 0, "conv1");
  CHECK(diagnose(state, 105 * s).stall);
  state.stage = node_stage::ended;
  CHECK_FALSE(diagnose(state, 105 * s).stall);
}

TEST_CASE("diagnose: a peer that is not heard of is named, with layer, clock and since when") {
  auto state = running(3);
  reports_until(state, 0, 103 * s);
  reports_until(state, 2, 103 * s);
  waits_for(state, 0, "ip1");
  waits_for(state, 0, "conv1");
  waits_for(state, 2, "ip1");
  const auto d = diagnose(state, 103 * s);
  REQUIRE(d.stall);
  CHECK(d.stall->worker == 0);
  CHECK(d.stall->clock == 41);
  CHECK(d.stall->layer == "conv1");
  CHECK(d.stall->phase == "update");
  CHECK(d.stall->peer == 1);
  CHECK(d.stall->since_ns == 100 * s);
  CHECK(
      to_string(*d.stall, 103 * s) ==
      "worker 0 has been stalled for 3.0 s: the update of conv1 of iteration 41 (parameter_server) "
      "has not arrived; it waits for worker 1, which has been silent for 3.0 s");
  CHECK(diagnosis_json(d, 103 * s)
            .text()
            .find("\"layer\":\"conv1\",\"phase\":\"update\",\"route\":"
                  "\"parameter_server\",\"peer\":1,\"bytes\":0,"
                  "\"since_ms\":3000}") != std::string::npos);
}

TEST_CASE("diagnose: nobody is judged before the others have reported since, or are silent") {
  auto state = running(2);
  reports_until(state, 0, 101 * s + s / 5);
  waits_for(state, 0, "conv1");
  CHECK_FALSE(diagnose(state, 101 * s + s / 5).stall);
  reports_until(state, 1, 100 * s + s / 2);
  CHECK(diagnose(state, 101 * s + s / 5).stall);
}

TEST_CASE("diagnose: whose reports are late, but not what its link brings, waits in a slow link") {
  auto state = running(2);
  reports_until(state, 0, 104 * s);
  reports_until(state, 1, 101 * s);
  waits_for(state, 0, "ip1");
  add_edge(state.workers[0], "gradient_push ip1", "network_link 1", "send_frame", 5, 3'000'000);
  CHECK(diagnose(state, 104 * s).stall->silent_ns == 3 * s);
  state.workers[1].contact.alive_ns = 104 * s - s / 10;
  const auto d = diagnose(state, 104 * s);
  REQUIRE(d.stall);
  CHECK(to_string(*d.stall, 104 * s)
            .ends_with(
                "has not arrived; it waits for worker 1; 3.00 MB wait in the link between them"));
}

TEST_CASE("diagnose: of peers that are heard the one that is behind is named") {
  auto state = running(3);
  for (const std::uint32_t id : {0, 1, 2}) {
    reports_until(state, id, 102 * s);
    waits_for(state, id, "conv1");
  }
  state.workers[1].pace.updates["conv1"] = {.handed_over = 40, .fresh = 40};
  const auto d = diagnose(state, 102 * s);
  REQUIRE(d.stall);
  CHECK(d.stall->peer == 1);
  CHECK(to_string(*d.stall, 102 * s).ends_with("worker 1, which has not computed its part yet"));
}

TEST_CASE("diagnose: where all have done their part the full link is named, and what waits in it") {
  auto state = running(3);
  for (const std::uint32_t id : {0, 1, 2}) {
    reports_until(state, id, 102 * s);
    waits_for(state, id, "ip1");
  }
  add_edge(state.workers[2], "factor_broadcast ip1", "network_link 0", "send_frame", 5, 9'000'000);
  state.workers[2].links = {{0, 1'000'000, 0, 0, 0}};
  const auto d = diagnose(state, 102 * s);
  REQUIRE(d.stall);
  CHECK(d.stall->peer == 2);
  CHECK(d.stall->bytes == 8'000'000);
  CHECK(to_string(*d.stall, 102 * s).ends_with("8.00 MB wait in the link between them"));
}

TEST_CASE("diagnose: who waits for its own data explains why the others wait for it") {
  auto state = running(2);
  for (const std::uint32_t id : {0, 1}) reports_until(state, id, 102 * s);
  waits_for(state, 0, "conv1");
  add_edge(state.workers[1], "solver", "data_source data [0]", "start_pass", 12);
  state.workers[1].graph.actors.push_back({"layer data [0]", "layer"});
  state.workers[1].graph.edges.push_back({1, 2, "batch_ready", 11, 0});
  const auto d = diagnose(state, 102 * s);
  REQUIRE(d.stall);
  CHECK(d.stall->worker == 1);
  CHECK(d.stall->phase == "data");
  CHECK(d.stall->layer == "data");
  CHECK_FALSE(d.stall->peer);
}

TEST_CASE("diagnose: a clock that always takes long is no stall, nor is a long kernel") {
  auto state = running(2);
  for (const std::uint32_t id : {0, 1}) {
    reports_until(state, id, 105 * s);
    CHECK_FALSE(diagnose(state, 105 * s).stall);  // nothing is awaited
    auto& clocks = state.workers[id].pace.clocks;
    for (auto& [began, clock] : clocks) began = static_cast<std::int64_t>(clock) * 9 * s;
    waits_for(state, id, "conv1");
  }
  CHECK_FALSE(diagnose(state, 105 * s).stall);
  for (const std::uint32_t id : {0, 1}) reports_until(state, id, 128 * s);
  CHECK(diagnose(state, 128 * s).stall);
  CHECK_FALSE(diagnose(state, 128 * s, 40 * s).stall);
}

TEST_CASE("diagnose: the worker whose kernels take over 1.5 times the median is a straggler") {
  auto state = running(3);
  CHECK(diagnose(state, 100 * s).stragglers.empty());
  for (auto& b : state.workers[2].pace.busy) b.second = s / 20 * 14 / 10;
  CHECK(diagnose(state, 100 * s).stragglers.empty());
  for (auto& b : state.workers[2].pace.busy) b.second = s / 20 * 2;
  const auto d = diagnose(state, 100 * s);
  REQUIRE(d.stragglers.size() == 1);
  CHECK(to_string(d.stragglers[0]) ==
        "worker 2 is slow: its kernels take 100.0 ms an iteration, the median of all workers is "
        "50.0 ms");
  auto quick = state;  // "0.1 ms, the median of all workers is 0.1 ms" would help nobody
  for (auto& [id, w] : quick.workers)
    for (auto& b : w.pace.busy) b.second /= 500;
  CHECK(diagnose(quick, 100 * s).stragglers.empty());
  auto short_run = state;
  for (std::uint32_t id = 0; id < 3; ++id)
    short_run.workers[id].pace.clocks.erase(short_run.workers[id].pace.clocks.begin(),
                                            short_run.workers[id].pace.clocks.begin() + 20);
  CHECK(diagnose(short_run, 100 * s).stragglers.empty());  // over two seconds chance decides
  state.workers[2].replicas = 2;                           // it trains twice as much
  CHECK(diagnose(state, 100 * s).stragglers.empty());
}
