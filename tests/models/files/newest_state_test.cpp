#include "models/files/newest_state.hpp"

#include "models/caffe.hpp"
#include "tests/folder.hpp"

#include <doctest/doctest.h>

#include <fstream>

using namespace poseidon;

namespace {

struct snapshots {
  test::temporary_folder folder;

  void write(std::uint64_t iteration, bool weights = true) const {
    const auto stem = (folder / ("run_iter_" + std::to_string(iteration))).string();
    ::caffe::SolverState state;
    state.set_iter(static_cast<int>(iteration));
    state.set_learned_net(stem + ".caffemodel");
    std::ofstream(stem + ".solverstate", std::ios::binary) << state.SerializeAsString();
    ::caffe::NetParameter net;
    net.set_name("net");
    auto& layer = *net.add_layer();
    layer.set_name("ip");
    layer.set_type("InnerProduct");
    layer.add_blobs()->add_data(1);
    if (weights) std::ofstream(stem + ".caffemodel", std::ios::binary) << net.SerializeAsString();
  }
  [[nodiscard]] found_state newest() const { return newest_state(folder / "run"); }
  [[nodiscard]] std::string newest_name() const {
    const auto found = newest();
    return found.path ? found.path->filename().string() : "";
  }
};

}  // namespace

TEST_CASE("newest_state: the largest iteration, not the last name") {
  snapshots s;
  CHECK(!s.newest().path);
  s.write(9000);
  s.write(10000);
  std::ofstream(s.folder / "run_iter_20000.caffemodel") << "weights without a state";
  std::ofstream(s.folder / "other_iter_30000.solverstate") << "another run";
  std::ofstream(s.folder / "run_iter_x.solverstate") << "no number";
  CHECK(s.newest_name() == "run_iter_10000.solverstate");
  CHECK(s.newest().passed_over.empty());
}

TEST_CASE("newest_state: a damaged state, and one without weights, are named and passed over") {
  snapshots s;
  s.write(100);
  s.write(200, false);
  std::ofstream(s.folder / "run_iter_300.solverstate", std::ios::binary) << "\x08\xff";
  const auto found = s.newest();
  REQUIRE(found.path);
  CHECK(found.path->filename() == "run_iter_100.solverstate");
  REQUIRE(found.passed_over.size() == 2);
  CHECK(found.passed_over[0].find("run_iter_300.solverstate: ") != std::string::npos);
  CHECK(found.passed_over[1].find("run_iter_200.caffemodel, are not there") != std::string::npos);
}

TEST_CASE("newest_state: a state whose weights are cut short is passed over") {
  snapshots s;
  s.write(100);
  s.write(200);
  std::filesystem::resize_file(s.folder / "run_iter_200.caffemodel", 3);
  const auto found = s.newest();
  REQUIRE(found.path);
  CHECK(found.path->filename() == "run_iter_100.solverstate");
  REQUIRE(found.passed_over.size() == 1);
  CHECK(found.passed_over[0].find("run_iter_200.caffemodel") != std::string::npos);
}

TEST_CASE("newest_state: files that were moved together still belong together") {
  snapshots s, elsewhere;
  s.write(100);
  for (const auto& file : std::filesystem::directory_iterator(s.folder.path()))
    std::filesystem::rename(file.path(), elsewhere.folder / file.path().filename());
  CHECK(elsewhere.newest_name() == "run_iter_100.solverstate");
}
