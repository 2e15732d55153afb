#include "apps/terminal/csv_file.hpp"

#include "tests/folder.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>

using namespace poseidon;

namespace {

struct warnings : app::run_listener {
  std::vector<std::string> lines;
  void warning(const std::string& line) override { lines.push_back(line); }
};

struct tables {
  test::temporary_folder folder;

  void train(bool resumed, std::uint64_t clock) const {
    warnings none;
    app::csv_file t(folder / "run.csv", resumed, none);
    t.trained({clock, 10, 0.5, {0.25, 0.75}, 0.01, 0, 0, 0}, {{"acc", 0}, {"loss", 1}});
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
  t.train(false, 3);
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
  t.train(false, 3);
  t.train(true, 4);
  CHECK(t.lines("run.csv").size() == 3);
  CHECK(t.lines("run.test0.csv").size() == 3);
  t.train(false, 0);
  CHECK(t.lines("run.csv").size() == 2);
}

TEST_CASE("csv_file: a full disk is said once, and training goes on") {
  warnings said;
  app::csv_file t("/dev/full", false, said);
  for (std::uint64_t clock = 0; clock < 3; ++clock)
    t.trained({clock, 10, 0.5, {}, 0.01, 0, 0, 0}, {});
  REQUIRE(said.lines.size() == 1);
  CHECK(said.lines[0].find("--csv /dev/full gets no more rows") == 0);
  CHECK_THROWS_AS(app::csv_file("/no/such/folder/x.csv", false, said), std::invalid_argument);
}
