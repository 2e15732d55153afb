#include "apps/web/run_files.hpp"

#include "tests/folder.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <sys/stat.h>

using namespace poseidon;

namespace {

struct run_folder : test::temporary_folder {
  int minutes = 0;

  /// Each is written a minute after the one before.
  void write(const std::string& name) {
    const auto path = temporary_folder::write(name, "{}");
    const std::chrono::file_clock::time_point zero{};
    std::filesystem::last_write_time(path, zero + std::chrono::minutes(++minutes));
  }
  [[nodiscard]] std::string shown() const {
    std::string text;
    for (const auto& file : web::newest_run_in(path()))
      text += (text.empty() ? "" : " ") + file.filename().string();
    return text;
  }
};

}  // namespace

TEST_CASE("run_files: the name says where a resumed run began") {
  CHECK(web::run_file("out/lenet", 0) == "out/lenet_run.json");
  CHECK(web::run_file("out/lenet", 500) == "out/lenet_run_from_500.json");
}

TEST_CASE("run_files: a folder shows the newest run, with those that it was resumed from") {
  run_folder f;
  f.write("lenet_run.json");
  CHECK(f.shown() == "lenet_run.json");
  f.write("lenet_run_from_500.json");
  f.write("lenet_run_from_700.json");
  CHECK(f.shown() == "lenet_run.json lenet_run_from_500.json lenet_run_from_700.json");
  f.write("lenet_run_from_300.json");  // resumed from an earlier snapshot: 500 and 700 are given up
  CHECK(f.shown() == "lenet_run.json lenet_run_from_300.json");
  f.write("lenet_run_from_900.json");
  CHECK(f.shown() == "lenet_run.json lenet_run_from_300.json lenet_run_from_900.json");
  f.write("vgg_run_from_2.json");  // another run, whose beginning is not here
  CHECK(f.shown() == "vgg_run_from_2.json");
  f.write("lenet_run.json");  // begun anew
  CHECK(f.shown() == "lenet_run.json");
}

TEST_CASE("run_files: other files are none, and a folder without any is refused") {
  run_folder f;
  for (const auto* name : {"lenet_run_from_x.json", "lenet_run_from_.json", "trace.json",
                           "lenet_run.json.bak", "lenet_run_from_5 .json"})
    f.write(name);
  std::filesystem::create_directory(f / "folder_run.json");
  REQUIRE(::mkfifo((f / "fifo_run.json").c_str(), 0600) == 0);
  CHECK_THROWS_AS((void)f.shown(), std::invalid_argument);
}
