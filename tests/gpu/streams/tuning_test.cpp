// --autotune: which of several ways is kept, when it is tried, and that trying changes nothing but the time. The simulated
// device has a clock that only convolutions move.
#include "gpu/tuning.hpp"

#include "gpu/device.hpp"
#include "tests/gpu/streams/rig.hpp"

#include <doctest/doctest.h>

using namespace poseidon;
using namespace poseidon::test;
using gpu::convolution_direction;
using gpu::tuning;

namespace {

tuning::product product(std::int64_t batch) {
  gpu::convolution_shape s;
  s.axes = 2;
  s.batch = batch;
  s.in = s.out = 1;
  s.image = s.result = s.kernel = s.stride = s.dilation = {1, 1};
  return {s, convolution_direction::forward};
}

gpu::simulated::machine_options machine(std::vector<double> ways_ms) {
  gpu::simulated::machine_options m;
  m.convolution_ms = std::move(ways_ms);
  return m;
}

std::shared_ptr<device> autotuned_gpus(std::vector<int> ordinals) {
  plugin_choice choice;
  choice.ordinals = std::move(ordinals);
  choice.autotune = true;
  return gpu::make_device(choice, std::make_shared<device_with<>>());
}

/// A replica of the small net whose parameters are zeros.
struct idle_replica {
  explicit idle_replica(device& on, std::size_t index = 0) : graph(make_small_net()) {
    std::vector<const parameter_values*> pointers;
    for (const auto& p : graph.parameters) {
      values.emplace_back(static_cast<std::size_t>(count(p.shape)), on.host_memory().get());
      holders.push_back(std::make_unique<parameter_values>());
      holders.back()->values = values.back().data();
      pointers.push_back(holders.back().get());
    }
    replica_options options;
    options.index = index;
    copy = on.make_replica(graph, pointers, options);
  }
  net graph;
  std::vector<host_values> values;
  std::vector<std::unique_ptr<parameter_values>> holders;
  std::unique_ptr<replica> copy;
};

}  // namespace

TEST_CASE(
    "tuning: the fastest way is kept, of equals the earlier, and each product is tried once") {
  tuning t;
  std::vector<std::size_t> tried;
  const auto times = [&](std::vector<double> ms) {
    return [&tried, ms = std::move(ms)](std::size_t way) {
      tried.push_back(way);
      return ms.at(way);
    };
  };
  CHECK(t.choose(product(1), 4, times({3, 1, 2, 1})) == 1);
  CHECK(tried == std::vector<std::size_t>{0, 1, 2, 3});
  CHECK(t.choose(product(1), 4, times({0, 9, 9, 9})) == 1);
  CHECK(tried.size() == 4);
  CHECK(t.choose(product(2), 2, times({5, 6})) == 0);
  auto other_direction = product(1);
  other_direction.second = convolution_direction::data_gradient;
  CHECK(t.choose(other_direction, 2, times({2, 1.5})) == 1);
  const auto g = t.gained();
  CHECK(g.tried == 3);
  CHECK(g.changed == 2);
  CHECK(g.untried == 0);
  CHECK(g.first_ms == 3 + 5 + 2);
  CHECK(g.chosen_ms == 1 + 5 + 1.5);
  CHECK(to_string(g) ==
        "3 products of convolutions tried, 2 of them computed in another way than the library's "
        "heuristics like best: 7.500 ms instead of 10.000 ms, one of each");
}

TEST_CASE(
    "tuning: a way that there is no memory for is none, and a lost device is no way's fault") {
  tuning t;
  const auto without = [](std::size_t missing, gpu::error_kind kind) {
    return [missing, kind](std::size_t way) {
      if (way <= missing) throw gpu::error(kind, 1, "not this one");
      return 2.0;
    };
  };
  CHECK(t.choose(product(1), 3, without(0, gpu::error_kind::memory)) == 1);
  CHECK(t.choose(product(2), 3, without(2, gpu::error_kind::unsupported)) == 0);
  CHECK_THROWS_AS((void)t.choose(product(3), 3, without(1, gpu::error_kind::lost)),
                  const gpu::error&);
  const auto g = t.gained();
  CHECK(g.tried == 1);
  CHECK(g.untried == 1);
  CHECK(g.first_ms == 0);  // nothing to compare with
  CHECK(g.chosen_ms == 0);
  CHECK(to_string(g).find("; 1 not tried, for which there was no memory beside the net") !=
        std::string::npos);
}

TEST_CASE(
    "tuning: the time of a stream's work is that of its device's clock, without the first run") {
  gpu::simulated::configure(machine({7}));
  gpu::stream s(1, gpu::stream_use::compute);
  gpu::library with(s, {});
  const auto p = product(1);
  gpu::convolution one(with, p.first);
  gpu::device_memory x(1, 4), w(1, 4), y(1, 4);
  int runs = 0;
  CHECK(gpu::least_ms(s, 3, [&] {
          ++runs;
          one.forward(x.floats(), w.floats(), y.floats());
          if (runs == 1) one.forward(x.floats(), w.floats(), y.floats());
        }) == 7);
  CHECK(runs == 4);
  CHECK(gpu::simulated::clock_ms(1) == 5 * 7);
  CHECK(gpu::simulated::clock_ms(0) == 0);
  gpu::event untimed(1), timed(1, gpu::event_use::timing), never(1, gpu::event_use::timing);
  record(untimed, s);
  record(timed, s);
  synchronise(timed);
  CHECK(milliseconds_between(timed, timed) == 0);
  CHECK_THROWS_AS((void)milliseconds_between(untimed, timed), const gpu::error&);
  CHECK_THROWS_AS((void)milliseconds_between(timed, never), const gpu::error&);
  CHECK(has_passed(untimed));
  CHECK(has_passed(never));
  CHECK_THROWS_WITH_AS(synchronise(untimed), doctest::Contains("only orders work"),
                       const gpu::error&);
}

TEST_CASE("tuning: a way that fails when it runs is none, and one that is far behind runs once") {
  gpu::simulated::configure(machine({7}));
  gpu::stream s(1, gpu::stream_use::compute);
  gpu::library plain(s, {});
  gpu::library_options options;
  options.autotune = std::make_shared<tuning>();
  gpu::library with(s, options);
  const auto p = product(1);
  gpu::convolution one(plain, p.first);
  std::vector<int> runs(4);
  const auto run = [&](std::size_t way, gpu::values x, gpu::values w, gpu::values y) {
    ++runs[way];
    if (way == 0) throw gpu::error(gpu::error_kind::misused, 2000, "CUDNN_STATUS_BAD_PARAM");
    for (std::size_t times = way == 2 ? 4 : way == 3 ? 2 : 1; times-- > 0;) one.forward(x, w, y);
  };
  CHECK(gpu::fastest_way(with, p, 4, run) == 1);
  CHECK(runs == std::vector<int>{1, 1 + 5, 1 + 1, 1 + 5});
}

TEST_CASE(
    "tuning: a replica's passes take the time of the fastest way, and one line says the gain") {
  gpu::simulated::configure(machine({3, 5, 1, 2}));
  const auto gpu = autotuned_gpus({0, 0, 2});
  {
    idle_replica first(*gpu, 0);
    // The convolution's input wants no diff, so it has two products.
    const auto before = gpu::simulated::clock_ms(0);
    CHECK(before == 2 * (1 + 5) * (3 + 5 + 1 + 2));
    for (std::size_t l = 0; l < first.graph.layers.size(); ++l) first.copy->at(l).forward({});
    for (std::size_t l = first.graph.layers.size(); l-- > 1;)
      if (first.graph.layers[l].needs_backward) first.copy->at(l).backward({});
    first.copy->finish();
    CHECK(gpu::simulated::clock_ms(0) == before + 2 * 1);
    CHECK(
        gpu->take_remarks() ==
        std::vector<std::string>{
            "autotune on GPU 0: 2 products of convolutions tried, 2 of them computed in another "
            "way "
            "than the library's heuristics like best: 2.000 ms instead of 6.000 ms, one of each"});
    CHECK(gpu->take_remarks().empty());
    idle_replica again(*gpu, 1);
    CHECK(gpu::simulated::clock_ms(0) == before + 2 * 1);  // known, on whatever stream
    CHECK(gpu->take_remarks().empty());
    idle_replica elsewhere(*gpu, 2);
    CHECK(gpu::simulated::clock_ms(2) == before);  // another GPU is tried separately
    CHECK(gpu->take_remarks().size() == 1);
  }
  const auto now = gpu::simulated::counted();
  CHECK(now.device_bytes == 0);
  CHECK(now.events == 0);
}

TEST_CASE(
    "tuning: it is not done unless it is asked for, nor where runs are to repeat their bits") {
  gpu::simulated::configure(machine({3, 1}));
  plugin_choice choice;
  choice.ordinals = {0};
  {
    const auto gpu = gpu::make_device(choice, std::make_shared<device_with<>>());
    const idle_replica r(*gpu);
    CHECK(gpu::simulated::clock_ms(0) == 0);
    CHECK(gpu->take_remarks().empty());
  }
  choice.autotune = choice.deterministic = true;
  CHECK_THROWS_AS((void)gpu::make_device(choice, std::make_shared<device_with<>>()),
                  const std::invalid_argument&);
}

TEST_CASE(
    "tuning: without memory to try in, a convolution runs in the way that heuristics like best") {
  auto small = machine({3, 1});
  small.devices = {{1000}};
  gpu::simulated::configure(small);
  gpu::stream s(0, gpu::stream_use::compute);
  gpu::library_options options;
  options.autotune = std::make_shared<tuning>();
  gpu::library with(s, options);
  const gpu::convolution fits(with, product(80).first, {true, false, false});
  CHECK(options.autotune->gained().changed == 1);
  const gpu::convolution does_not(with, product(800).first, {true, false, false});
  CHECK(options.autotune->gained().changed == 1);
  CHECK(options.autotune->gained().untried == 1);
}
