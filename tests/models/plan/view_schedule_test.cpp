#include "models/plan/view_schedule.hpp"

#include "models/spec/spec_file.hpp"
#include "tests/folder.hpp"

#include <doctest/doctest.h>

#include <fstream>

using namespace poseidon;

namespace {

struct schedule_file {
  test::temporary_folder folder;
  std::string path = (folder / "views").string();
  explicit schedule_file(const std::string& text) { std::ofstream(path) << text; }
  [[nodiscard]] view_schedule read(std::uint64_t first_clock, std::size_t nodes) const {
    return read_view_schedule(path, first_clock, nodes);
  }
  [[nodiscard]] std::string mistake(std::uint64_t first_clock = 0, std::size_t nodes = 2) const {
    try {
      (void)read(first_clock, nodes);
      return "none";
    } catch (const spec_error& e) {
      return e.what();
    }
  }
};

}  // namespace

TEST_CASE("view_schedule: what follows the first iteration of the run") {
  const schedule_file f("# of a run\n0 2\n\n10 3 # one joined\n25 1\n");
  CHECK(f.read(0, 2) == view_schedule{{10, 3}, {25, 1}});
  CHECK(f.read(10, 3) == view_schedule{{25, 1}});
  CHECK(f.read(12, 3) == view_schedule{{25, 1}});
  CHECK(f.read(30, 1).empty());
  CHECK(schedule_file("5 3\n").read(0, 2) == view_schedule{{5, 3}});
}

TEST_CASE("view_schedule: mistakes are told with file, line and what was found") {
  CHECK(schedule_file("0 2\nten 3\n").mistake().find("views:2: ") != std::string::npos);
  CHECK(schedule_file("0 2\nten 3\n").mistake().find("found \"ten 3\"") != std::string::npos);
  for (const auto* text : {"5\n", "5 0\n", "5 3 1\n", "-1 2\n", "5 5000\n", "5 3x\n"})
    CHECK(schedule_file(text).mistake().find("expected the number of an iteration") !=
          std::string::npos);
  CHECK(schedule_file("7 2\n7 3\n").mistake().find("iteration 7 comes after 7") !=
        std::string::npos);
  CHECK(schedule_file("0 3\n").mistake().find("has 3 nodes in iteration 0, with which the run "
                                              "begins, and --nodes says 2.") != std::string::npos);
  CHECK(schedule_file("# nothing\n").mistake().find("has no line") != std::string::npos);
  for (const auto* file : {"/no/such/file", "/tmp", "/dev/null", "/dev/zero"}) {
    CAPTURE(file);
    CHECK_THROWS_AS((void)read_view_schedule(file, 0, 1), spec_error);
  }
}
