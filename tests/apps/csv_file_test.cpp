#include "apps/terminal/csv_file.hpp"

#include "tests/folder.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <optional>

using namespace poseidon;

namespace {

struct warnings : app::run_listener {
  std::vector<std::string> lines;
  void warning(const std::string& line) override { lines.push_back(line); }
};

struct tables {
  test::temporary_folder folder;

  void train(std::optional<std::uint64_t> resumed_at, std::uint64_t clock) const {
    warnings none;
    app::csv_file t(folder / "run.csv", resumed_at, none);
    t.trained({.clock = clock,
               .last_clock = 10,
               .loss = 0.5,
               .outputs = {0.25, 0.75},
               .learning_rate = 0.01},
              {{"acc", 0}, {"loss", 1}});
    t.tested(0, clock, {0.9}, {{"a,b", 0}});
  }
  [[nodiscard]] std::vector<std::string> lines(const char* name) const {
    std::ifstream file(folder / name);
    std::vector<std::string> out;
    for (std::string line; std::getline(file, line);) out.push_back(line);
    return out;
  }
};

}  // namespace

TEST_CASE("csv_file: a row for each interval and each test") {
  tables t;
  t.train({}, 3);
  const auto rows = t.lines("run.csv");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0] == "NumIters,Seconds,LearningRate,acc,loss,smoothed_loss");
  CHECK(rows[1].starts_with("3,"));
  CHECK(rows[1].ends_with(",0.01,0.25,0.75,0.5"));
  const auto tests = t.lines("run.test0.csv");
  REQUIRE(tests.size() == 2);
  CHECK(tests[0] == "NumIters,Seconds,\"a,b\"");
  CHECK(tests[1].ends_with(",0.9"));
}

TEST_CASE("csv_file: a resumed run adds rows, another one begins the table anew") {
  tables t;
  t.train({}, 3);
  t.train(4, 4);
  CHECK(t.lines("run.csv").size() == 3);
  CHECK(t.lines("run.test0.csv").size() == 3);
  t.train({}, 0);
  CHECK(t.lines("run.csv").size() == 2);
}

TEST_CASE("csv_file: what a resumed run repeats, and a row that is cut short, are replaced") {
  tables t;
  for (const std::uint64_t clock : {3, 4, 5})
    t.train(clock == 3 ? std::nullopt : std::optional(clock), clock);
  REQUIRE(t.lines("run.csv").size() == 4);
  std::ofstream(t.folder / "run.csv", std::ios::app) << "6,1.5";
  t.train(5, 5);
  auto rows = t.lines("run.csv");
  REQUIRE(rows.size() == 4);
  CHECK(rows[2].starts_with("4,"));
  CHECK(rows[3].starts_with("5,"));
  CHECK(rows[3].ends_with(",0.01,0.25,0.75,0.5"));
  CHECK(t.lines("run.test0.csv").size() == 4);
  const auto seconds = [](const std::string& row) { return std::stod(row.substr(2)); };
  CHECK(seconds(rows[3]) > seconds(rows[2]));  // they go on
}

TEST_CASE("csv_file: a table with other columns is left as it is") {
  tables t;
  t.train({}, 3);
  warnings said;
  {
    app::csv_file other(t.folder / "run.csv", 4, said);
    for (const std::uint64_t clock : {4, 5})
      other.trained(
          {.clock = clock, .last_clock = 10, .loss = 0.5, .outputs = {1}, .learning_rate = 0.01},
          {{"error", 0}});
  }
  CHECK(t.lines("run.csv").size() == 2);
  REQUIRE(said.lines.size() == 1);
  CHECK(said.lines[0].find("its columns are NumIters,Seconds,LearningRate,acc,loss,smoothed_loss, "
                           "and those of this run are "
                           "NumIters,Seconds,LearningRate,error,smoothed_loss. Name") !=
        std::string::npos);
}

TEST_CASE("csv_file: a full disk is said once, and training goes on") {
  warnings said;
  app::csv_file t("/dev/full", {}, said);
  for (std::uint64_t clock = 0; clock < 3; ++clock)
    t.trained({.clock = clock, .last_clock = 10, .loss = 0.5, .outputs = {}, .learning_rate = 0.01},
              {});
  REQUIRE(said.lines.size() == 1);
  CHECK(said.lines[0].find("--csv /dev/full gets no more rows") == 0);
  CHECK_THROWS_AS(app::csv_file("/no/such/folder/x.csv", {}, said), std::invalid_argument);
}
