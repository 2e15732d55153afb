#include "apps/terminal/run_lines.hpp"

#include "apps/terminal/console.hpp"
#include "apps/terminal/task_list.hpp"

#include <doctest/doctest.h>

using namespace poseidon;
using namespace poseidon::app;

namespace {

using progress = poseidon::progress;

run_meter::time_point at(double seconds) {
  return run_meter::time_point{} + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                       std::chrono::duration<double>(seconds));
}

run_state full() {
  run_state s;
  s.done = 1259;
  s.total = 10000;
  s.left_s = 1625;
  s.loss = 2.033;
  s.outputs = {{"top-1", 0.525}};
  s.images_s = 695;
  s.net = run_meter::traffic{248e6, 244e6};
  s.hidden = 0.68;
  return s;
}

std::vector<std::string> texts(const std::vector<styled_line>& lines) {
  std::vector<std::string> out;
  for (const auto& line : lines) out.push_back(sent(line, false));
  return out;
}

}  // namespace

TEST_CASE("run_lines: two lines say how far, how well and how fast") {
  const auto lines = texts(run_lines(full(), 79));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] ==
        " iter  1259/10000  12.5%  |####                                  |  left 27m05s");
  CHECK(lines[1] == " loss 2.033  top-1 0.525  695 images/s  net 248/244 MB/s  hidden 68%");
}

TEST_CASE("run_lines: on a narrow terminal there is less, and never half a number") {
  const auto lines = texts(run_lines(full(), 37));
  CHECK(lines[0] == " iter  1259/10000  12.5%  left 27m05s");
  CHECK(lines[1] == " loss 2.033  top-1 0.525  hidden 68%");
  auto longer = full();
  longer.total = 1000000;
  CHECK(texts(run_lines(longer, 37))[0] == " iter    1259/1000000  left 27m05s");
  for (std::size_t columns = 1; columns < 200; ++columns)
    CHECK(columns_of(run_lines(full(), columns)[1]) <= std::max<std::size_t>(columns, 1));
  for (std::size_t columns = 37; columns < 200; ++columns)
    CHECK(columns_of(run_lines(full(), columns)[0]) <= columns);
}

TEST_CASE("run_lines: the bar moves neither with the time left nor with the iterations") {
  auto s = full();
  const auto late = sent(run_lines(s, 79)[0], false);
  s.done = 7;
  CHECK(sent(run_lines(s, 79)[0], false).find('|') == late.find('|'));
  const auto wide = sent(run_lines(s, 79)[0], false);
  s.left_s = 9;
  const auto narrow = sent(run_lines(s, 79)[0], false);
  CHECK(wide.rfind('|') == narrow.rfind('|'));
}

TEST_CASE("run_lines: tests to come are named where there is room") {
  auto s = full();
  s.tests_left_s = 720;
  CHECK(texts(run_lines(s, 79))[0].ends_with("|  left 27m05s, tests 12m00s"));
  CHECK(texts(run_lines(s, 50))[0].ends_with("|  left 27m05s"));
  for (std::size_t columns = 37; columns < 200; ++columns)
    CHECK(columns_of(run_lines(s, columns)[0]) <= columns);
}

TEST_CASE("run_lines: a run that stands still says so in the place of the time left") {
  auto s = full();
  s.waiting_s = 12;
  CHECK(texts(run_lines(s, 79))[0].ends_with("|  waiting 12s"));
}

TEST_CASE("run_lines: names of others are shortened and obeyed by no terminal") {
  auto s = full();
  s.outputs = {{std::string(50, 'x') + "/top", 1}, {"a\033[2J", 2}};
  const auto line = texts(run_lines(s, 200))[1];
  CHECK(line.find("xxxxxxxxxxx..xxxxxxx/top 1") != std::string::npos);
  CHECK(line.find("a?[2J 2") != std::string::npos);
}

TEST_CASE("run_lines: 100 % is not shown before it is over") {
  auto s = full();
  s.done = 99999;
  s.total = 100000;
  CHECK(texts(run_lines(s, 60))[0].find("99.9%") != std::string::npos);
  s.done = s.total = 0;
  CHECK(texts(run_lines(s, 60))[0].find("0/0   0.0%") != std::string::npos);
}

TEST_CASE(
    "run_meter: rates are those of the interval, and the time left of the newest iterations") {
  run_meter m(2);
  CHECK_FALSE(m.begun());
  m.stepped({100, 200, 0, 0, 0}, at(0));
  m.stepped({110, 200, 1000, 50'000'000, 40'000'000}, at(2));
  progress::iteration i;
  i.clock = 109;
  i.last_clock = 200;
  i.images = 1000;
  i.communication_ns = 1000;
  i.exposed_ns = 250;
  const auto first = m.trained(i, at(2));
  CHECK(first.images_s == doctest::Approx(500));
  CHECK(*first.hidden == doctest::Approx(0.75));
  CHECK(first.net->out_per_s == doctest::Approx(25e6));
  CHECK(first.net->in_per_s == doctest::Approx(20e6));
  CHECK(*first.left_s == doctest::Approx(18));
  m.stepped({120, 200, 2000, 50'000'000, 40'000'000}, at(3));
  i.images = 2000;
  const auto second = m.trained(i, at(3));
  CHECK(second.images_s == doctest::Approx(1000));
  CHECK(second.net->out_per_s == doctest::Approx(0));
  CHECK_FALSE(second.hidden);  // nothing was sent
}

TEST_CASE("run_meter: a node that is alone has no network") {
  run_meter m(1);
  m.stepped({0, 10, 0, 0, 0}, at(0));
  m.stepped({1, 10, 8, 0, 0}, at(1));
  progress::iteration i;
  i.communication_ns = 5;
  const auto shown = m.trained(i, at(1));
  CHECK_FALSE(shown.hidden);
  CHECK_FALSE(shown.net);
  CHECK_FALSE(m.net());
}

TEST_CASE(
    "run_meter: it waits when no iteration ends for long, and not while something else is done") {
  run_meter m(1);
  CHECK_FALSE(m.waiting_s(at(100)));
  m.stepped({0, 10, 0, 0, 0}, at(0));
  CHECK_FALSE(m.waiting_s(at(1.9)));
  CHECK(*m.waiting_s(at(30)) == doctest::Approx(30));  // the first iteration has not ended
  m.stepped({1, 10, 0, 0, 0}, at(4));
  CHECK_FALSE(m.waiting_s(at(15)));  // short beside iterations of 4 s
  CHECK(*m.waiting_s(at(17)) == doctest::Approx(13));
  m.pause_begins(at(4));
  m.pause_ends(at(16));
  CHECK_FALSE(m.waiting_s(at(17)));
  m.stepped({10, 10, 0, 0, 0}, at(18));
  CHECK_FALSE(m.waiting_s(at(100)));  // the run has ended
  CHECK_FALSE(m.left_s(at(100)));
}

TEST_CASE(
    "run_meter: the time left leaves out test phases; those to come have a time of their own") {
  run_meter m(1);
  m.stepped({0, 100, 0, 0, 0}, at(0));
  m.pause_begins(at(0));  // the test of the untrained net
  m.pause_ends(at(50));
  m.stepped({1, 100, 0, 0, 0}, at(51));
  CHECK(*m.left_s(at(51)) == doctest::Approx(99));
  CHECK_FALSE(m.tests_left_s(at(51)));
  for (int i = 2; i <= 10; ++i) m.stepped({std::uint64_t(i), 100, 0, 0, 0}, at(50 + i));
  m.pause_begins(at(60));  // half of the time since the first iteration
  m.pause_ends(at(69));
  CHECK(*m.left_s(at(69)) == doctest::Approx(90));
  CHECK(*m.tests_left_s(at(69)) == doctest::Approx(90));
}

TEST_CASE("run_meter: images/s are those of the training, whatever was tested in the interval") {
  run_meter m(2);
  m.stepped({0, 100, 0, 0, 0}, at(0));
  m.stepped({10, 100, 1000, 10'000'000, 0}, at(2));
  m.pause_begins(at(2));
  m.pause_ends(at(62));
  m.stepped({20, 100, 2000, 20'000'000, 0}, at(64));
  progress::iteration i;
  i.images = 2000;
  const auto shown = m.trained(i, at(64));
  CHECK(shown.images_s == doctest::Approx(500));
  CHECK(shown.net->out_per_s == doctest::Approx(5e6));

  SUBCASE("an iteration that was in work when the test was announced was no part of it") {
    m.pause_begins(at(64));
    m.stepped({21, 100, 2100, 20'000'000, 0}, at(65));
    i.images = 2100;
    CHECK(m.trained(i, at(65)).images_s == doctest::Approx(100));
    m.pause_ends(at(165));
    m.stepped({22, 100, 2200, 20'000'000, 0}, at(166));
    i.images = 2200;
    CHECK(m.trained(i, at(166)).images_s == doctest::Approx(100));
  }
  SUBCASE("two test phases that overlap count once") {
    m.pause_begins(at(64));
    m.pause_begins(at(65));
    m.pause_ends(at(70));
    m.pause_ends(at(74));
    m.stepped({30, 100, 3000, 20'000'000, 0}, at(76));
    i.images = 3000;
    CHECK(m.trained(i, at(76)).images_s == doctest::Approx(500));
  }
}

TEST_CASE("interval_line: has what programs read, network and time left last") {
  progress::iteration i;
  i.clock = 120;
  i.last_clock = 2300;
  i.loss = 0.51;
  i.learning_rate = 0.01;
  i.outputs = {0.89, 0.4};
  run_meter::interval rates;
  rates.images_s = 4813;
  const std::vector<output_value> outputs = {{"accuracy", 0}, {"loss", 1}};
  CHECK(interval_line(i, outputs, rates) ==
        "iteration 120/2300: loss 0.51 lr 0.01 accuracy 0.89 images/s 4813");
  rates.hidden = 0.97;
  rates.net = run_meter::traffic{24.8e6, 24.4e6};
  rates.left_s = 40;
  CHECK(interval_line(i, outputs, rates) ==
        "iteration 120/2300: loss 0.51 lr 0.01 accuracy 0.89 images/s 4813 hidden 97% "
        "net 24.8/24.4 MB/s left 40s");
  rates.tests_left_s = 720;
  CHECK(interval_line(i, outputs, rates).ends_with(" left 40s, tests 12m00s"));
}

TEST_CASE(
    "task_list: only what has lasted two seconds and is not complete is shown, the newest of it") {
  task_list tasks;
  std::uint64_t done = 0;
  CHECK_FALSE(tasks.any());
  auto building = tasks.begin({"building the net", 0, {}}, at(0));
  auto opening = tasks.begin({"opening data/train_lmdb", 1000, [&] { return done; }}, at(1));
  CHECK(tasks.any());
  CHECK(tasks.lines(80, at(1.9)).empty());
  CHECK(texts(tasks.lines(80, at(2))) == std::vector<std::string>{" building the net  2s"});
  done = 500;
  const auto both = texts(tasks.lines(80, at(3)));
  REQUIRE(both.size() == 2);
  CHECK(both[1] ==
        " opening data/train_lmdb  |##############              |  500 of 1000  left 2s");
  CHECK(texts(tasks.lines(80, at(3), 1)) == std::vector<std::string>{both[1]});
  done = 1000;
  CHECK(tasks.lines(80, at(3)).size() == 1);
  opening.reset();
  building.reset();
  CHECK_FALSE(tasks.any());
  CHECK(tasks.lines(80, at(9)).empty());
}

TEST_CASE("task_list: a task may outlive the list, and its end is told") {
  std::shared_ptr<void> task;
  int ended = 0;
  {
    task_list tasks;
    task = tasks.begin({"testing", 0, {}}, at(7), [&] { ++ended; });
  }
  CHECK(ended == 0);
  task.reset();
  CHECK(ended == 1);
}

TEST_CASE("task_line: fits any terminal down to what its figures need") {
  long_task task{
      "receiving the parameters of a very deep net", 4'800'000'000, {}, long_task::unit::bytes};
  const auto line = sent(task_line(task, 1'200'000'000, 4, 12, 80), false);
  CHECK(line == " receiving the parameters of a very deep net  |#      |  1.2 of 4.8 GB  left 12s");
  for (std::size_t columns = 36; columns < 160; ++columns)
    CHECK(columns_of(task_line(task, 1'200'000'000, 4, 12, columns)) <= columns);
}
