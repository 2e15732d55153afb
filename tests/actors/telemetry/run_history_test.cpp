#include "actors/telemetry/run_history.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace poseidon;

namespace {

std::size_t times(const std::string& text, char c) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), c));
}

}  // namespace

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

TEST_CASE("run_history: a run of a million clocks takes bounded memory and keeps its shape") {
  run_history h(nullptr, 1);
  const std::vector<output_value> outputs{{"loss", 1}};
  run_history::place live;
  std::size_t in_time = 0;
  for (std::uint64_t clock = 0; clock < 1'000'000; ++clock) {
    progress::iteration i;
    i.clock = clock;
    i.outputs = {0.5};
    h.trained(i, outputs);
    for (std::size_t net = 0; net < 2 && clock % 100 == 0; ++net)
      h.tested(net, clock, {0.25}, outputs);
    if (clock % 100'000 == 99'999)
      in_time += h.json(live).find("[" + std::to_string(clock) + ",") != std::string::npos ? 1 : 0;
  }
  CHECK(in_time == 10);  // a reader that reads while the run goes on gets each newest point
  CHECK(h.json(live).empty());
  CHECK(h.newest()->clock == 999'999);
  const auto lines = times(h.csv(), '\n');
  CHECK(lines <= 20'002);
  CHECK(lines > 5'000);
  CHECK(h.csv().find("\n999999,") != std::string::npos);
  run_history::place late;
  const auto all = h.json(late);
  CHECK(all.find("\"points\":[[0,") != std::string::npos);
  CHECK(all.find("{\"net\":0,\"clock\":0,") != std::string::npos);
  CHECK(all.find("{\"net\":1,\"clock\":999900,") != std::string::npos);
  CHECK(all.find("{\"net\":0,\"clock\":999900,") != std::string::npos);
  CHECK(all.size() < 5'000'000);
  CHECK(h.json(late).empty());
  progress::iteration next;
  next.clock = 1'000'000;
  next.outputs = {0.5};
  h.trained(next, outputs);
  CHECK(h.json(late).find("\"points\":[[1000000,") != std::string::npos);
}

TEST_CASE("thinned_list: drops whole ranks, and keeps the newest of the others") {
  thinned_list<int> list(6);
  for (int i = 0; i < 100; ++i)
    for (int twin = 0; twin < 2; ++twin) list.push(static_cast<std::uint64_t>(i), 10 * i + twin);
  std::vector<int> kept;
  list.for_each_from(0, [&](int v) { kept.push_back(v); });
  CHECK(kept == std::vector{0, 1, 640, 641, 990, 991});
  CHECK(list.seen() == 200);
}
