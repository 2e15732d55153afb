#include "actors/telemetry/run_history.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>

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

TEST_CASE("run_history: views are marks with the number of nodes from then on, each read once") {
  run_history h(nullptr, 1);
  progress::view v;
  v.seats = {0};
  h.viewed(v);
  run_history::place from;
  CHECK(h.json(from).find("\"views\":[[0,") != std::string::npos);
  v.epoch = 2;
  v.first_clock = 7;
  v.seats = {0, 2, 3};
  v.changed = "worker 3 joined";
  h.viewed(v);
  const auto next = h.json(from);
  CHECK(next.find("\"views\":[[7,") != std::string::npos);
  CHECK(next.find(",3,\"worker 3 joined\"]]") != std::string::npos);
  progress::iteration i;
  i.clock = 7;
  i.communication_ns = 100;
  i.exposed_ns = 25;
  h.trained(i, {});
  CHECK(h.newest()->hidden == 0.75);  // it was alone at first
  for (int n = 0; n < 1000; ++n) h.viewed(v);
  CHECK(h.now({}).views.size() == 500);
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
  list.now().for_each_from(0, [&](int v) { kept.push_back(v); });
  CHECK(kept == std::vector{0, 1, 640, 641, 990, 991});
  CHECK(list.now().seen() == 200);
}

namespace {

/// Counts how often it is copied.
struct counted {
  int value = 0;
  int* copies = nullptr;
  counted() = default;
  counted(int v, int* c) : value(v), copies(c) {}
  counted(const counted& o) : value(o.value), copies(o.copies) { ++*copies; }
  counted(counted&&) = default;
  counted& operator=(const counted& o) {
    value = o.value;
    copies = o.copies;
    ++*copies;
    return *this;
  }
  counted& operator=(counted&&) = default;
};

}  // namespace

TEST_CASE("thinned_list: a copy stays as it was, and no item is copied for it") {
  int copies = 0;
  thinned_list<counted> list(20'000);
  int next = 0;
  const auto push = [&](int n) {
    for (; n > 0; --n, ++next) list.push(static_cast<std::uint64_t>(next), {next, &copies});
  };
  push(15'000);
  const auto then = list.now();
  push(30'000);  // thins the list, in which `then` has its items
  const auto later = list.now();
  std::vector<int> seen;
  then.for_each_from(14'990, [&](const counted& c) { seen.push_back(c.value); });
  CHECK(seen == std::vector{14990, 14991, 14992, 14993, 14994, 14995, 14996, 14997, 14998, 14999});
  int all = 0, first = -1, last = -1;
  then.for_each_from(0, [&](const counted& c) {
    if (all++ == 0) first = c.value;
    last = c.value;
  });
  CHECK(all == 15'000);
  CHECK(first == 0);
  CHECK(last == 14'999);
  last = -1;
  later.for_each_from(44'999, [&](const counted& c) { last = c.value; });
  CHECK(last == 44'999);
  CHECK(copies == 0);
}

TEST_CASE("run_history: who reads a copy, however slowly, keeps nobody from adding to the run") {
  run_history h(nullptr, 1);
  progress::iteration i;
  i.last_clock = 1000;
  i.outputs = {0.5};
  const auto add = [&] {
    h.trained(i, {{"loss", 1}});
    ++i.clock;
    h.note("a line");
    h.carried(i.clock, 0);
  };
  for (int n = 0; n < 600; ++n) add();
  const auto copy = h.now({});
  std::uint64_t read = 0;
  copy.points.for_each_from(0, [&](const run_history::point& p) {
    CHECK(p.clock == read++);
    if (read % 100 == 0)
      add();  // in the middle of a read: with the lock held, this would never return
  });
  CHECK(read == 600);
  CHECK(copy.lines.size() == 500);
  CHECK(copy.lines.back()->number == 599);
  CHECK(h.newest()->clock == 605);
}

TEST_CASE("run_history: of a net with thousands of outputs as many values are kept as of others") {
  run_history h(nullptr, 1);
  progress::iteration i;
  i.outputs.assign(1999, 0.5);
  const std::vector<output_value> outputs(1999, {"value", 0});
  for (i.clock = 0; i.clock < 3000; ++i.clock) h.trained(i, outputs);
  std::size_t kept = 0;
  h.now({}).points.for_each_from(0, [&](const auto&) { ++kept; });
  CHECK(kept > 200);
  CHECK(kept <= 501);
}

TEST_CASE("run_history: says what training pauses for, until that is over") {
  std::optional<run_history> h(std::in_place, nullptr, 1);
  CHECK_FALSE(h->paused_for());
  std::uint64_t done = 0;
  long_task task{"testing", 1000, [&] { return done; }};
  const auto other = h->working(task);  // for example a snapshot: training goes on
  CHECK_FALSE(h->paused_for());
  task.training_pauses = true;
  auto paused = h->working(task);
  done = 312;
  REQUIRE(h->paused_for());
  CHECK(h->paused_for()->what == "testing");
  CHECK(h->paused_for()->done == 312);
  CHECK(h->paused_for()->total == 1000);
  SUBCASE("it ends before the history") {
    paused.reset();
    CHECK_FALSE(h->paused_for());
  }
  SUBCASE("the history ends before it") {
    h.reset();
    paused.reset();
  }
}
