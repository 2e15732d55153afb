// Caffe's 14 reference runs: their solvers, nets, weights and states are read, and their rates are
// ours.
#include "models/files/snapshot.hpp"
#include "models/solver/solver_file.hpp"
#include "tests/models/nets.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <functional>

using namespace poseidon;
namespace fs = std::filesystem;

namespace {

/// Net files are named relative to the run's own folder.
class working_directory {
 public:
  explicit working_directory(const fs::path& path) : before_(fs::current_path()) {
    fs::current_path(path);
  }
  working_directory(const working_directory&) = delete;
  working_directory& operator=(const working_directory&) = delete;
  ~working_directory() {
    std::error_code ignored;
    fs::current_path(before_, ignored);
  }

 private:
  fs::path before_;
};

/// Lines "iteration,loss,lr,..." after the header.
void each_rate(const fs::path& csv, const std::function<void(std::uint64_t, double)>& act) {
  std::ifstream in(csv);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    const auto loss = line.find(','), rate = line.find(',', loss + 1);
    act(std::stoull(line), std::stod(line.substr(rate + 1)));
  }
}

net build_train_net(const solver_file& solver) {
  // All runs read Fashion-MNIST; the crops that some take change no parameter's shape but by
  // crop_size.
  build_options options{solver.train_state, {}, 1};
  options.sources = [](const ::caffe::LayerParameter& layer, const spec_position&) {
    const std::int64_t batch = layer.data_param().batch_size();
    const std::int64_t crop = layer.transform_param().crop_size();
    const auto side = crop > 0 ? crop : 28;
    return std::vector<shape>{{batch, 1, side, side}, {batch}};
  };
  return build_net(solver.train_net, options);
}

}  // namespace

TEST_CASE(
    "solver_file: every reference run is read, with Caffe's learning rates and its weights and "
    "state" *
    doctest::skip(test::oracle().empty())) {
  int runs = 0, states = 0;
  for (const auto& entry : fs::directory_iterator(fs::absolute(test::oracle()) / "solvers")) {
    CAPTURE(entry.path().filename().string());
    const working_directory here(entry.path());
    const auto solver = read_solver("solver.prototxt");
    ++runs;
    each_rate("losses.csv", [&](std::uint64_t iteration, double rate) {
      CHECK(learning_rate(solver.spec, iteration) == doctest::Approx(rate).epsilon(2e-7).scale(0));
    });
    const auto n = build_train_net(solver);
    parameter_arrays values;
    copy_weights(read_caffemodel("init.caffemodel"), "init.caffemodel", n, values);
    for (std::size_t p = 0; p < values.size(); ++p)
      CHECK(static_cast<std::int64_t>(values[p].size()) == count(n.parameters[p].shape));
    if (!fs::exists("snapshot")) continue;
    for (const auto& file : fs::directory_iterator("snapshot")) {
      if (file.path().extension() != ".solverstate") continue;
      ++states;
      CHECK(read_solverstate(file.path(), n, rule_of(solver.spec).kind).iteration > 0);
    }
  }
  CHECK(runs >= 14);
  CHECK(states >= 3);
}
