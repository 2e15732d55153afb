// `poseidon-node time` on an asynchronous device: it measures each layer alone, with a wait, or whole iterations
// without such waits. The values have to be the same, and those of the CPU.
#include "apps/bare/bare_run.hpp"
#include "cpu/cpu_device.hpp"
#include "gpu/device.hpp"
#include "gpu/simulated/control.hpp"
#include "models/spec/spec_file.hpp"

#include <doctest/doctest.h>

using namespace poseidon;
using namespace poseidon::app;
using gpu::simulated::lateness;

namespace {

constexpr const char* small_net = R"(
  name: "small"
  layer { name: "data" type: "DummyData" top: "data" top: "label"
          dummy_data_param { shape { dim: 8 dim: 6 } shape { dim: 8 } data_filler { type: "gaussian" std: 1 }
                             data_filler { type: "constant" value: 1 } } }
  layer { name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1"
          inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
  layer { name: "tanh" type: "TanH" bottom: "ip1" top: "ip1" }
  layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
          inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
)";
constexpr std::uint64_t layers = 5, with_backward = 4, with_parameters = 2;

bare_run small_run(std::shared_ptr<device> on, ::caffe::Phase phase = ::caffe::TRAIN) {
  run_definition run;
  run.solver.train_net = parse_net(small_net, "small");
  run.solver.train_state.phase = phase;
  run.solver.spec.set_lr_policy("fixed");
  run.solver.spec.set_base_lr(0.5f);
  node_spec node;
  node.compute = std::move(on);
  node.replicas = 1;
  return {run, node, {}};
}

std::shared_ptr<device> simulated_gpu(lateness late) {
  gpu::simulated::machine_options machine;
  machine.late = late;
  gpu::simulated::configure(machine);
  plugin_choice choice;
  choice.ordinals = {0};
  choice.math = device_math::fp32;
  return gpu::make_device(choice, make_cpu_device());
}

/// Parameters after four iterations, the middle two of which are timed.
std::vector<float> trained(bare_run run) {
  for (const bool timed : {false, true, true, false}) {
    run.timed = timed;
    run.iterate(1);
  }
  std::vector<float> values;
  const auto& c = run.compiled();
  for (const auto& of : c.store->copy(4)) values.insert(values.end(), of.begin(), of.end());
  return values;
}

/// How often the host waits for the device in one iteration, or looks until something has passed.
std::uint64_t waits(bare_run& run, bool timed) {
  const auto so_far = [] {
    const auto c = gpu::simulated::counted();
    return c.host_waits + c.moments_seen;
  };
  run.timed = timed;
  const auto before = so_far();
  run.iterate(1);
  return so_far() - before;
}

}  // namespace

TEST_CASE("times: an asynchronous device learns what the CPU learns, timed or not") {
  const auto wanted = trained(small_run(make_cpu_device()));
  for (const lateness late : {lateness::none, lateness::copy_streams, lateness::compute_streams}) {
    CAPTURE(static_cast<int>(late));
    const auto ours = trained(small_run(simulated_gpu(late)));
    REQUIRE(ours.size() == wanted.size());
    for (std::size_t i = 0; i < ours.size(); ++i)
      CHECK(ours[i] == doctest::Approx(wanted[i]).epsilon(1e-4));
  }
}

TEST_CASE(
    "times: the host waits for each timed layer in both directions, otherwise only at the end") {
  const auto gpu = simulated_gpu(lateness::none);
  {
    auto run = small_run(gpu);
    run.iterate(1);
    CHECK(waits(run, false) == with_parameters + 1);  // gradients, and the last layer
    // And for the end of the pass with what went wrong, and for the update.
    CHECK(waits(run, true) == layers + with_backward + 4);
    REQUIRE(run.compiled().updates != nullptr);
    CHECK(run.compiled().updates->holds(0));
    for (const auto& t : run.times()) CHECK(t.forward > 0);
    CHECK(run.times()[1].backward > 0);
    CHECK(run.times()[0].backward == 0);
    CHECK(run.update_seconds() > 0);
  }
  auto test = small_run(gpu, ::caffe::TEST);
  test.iterate(1);
  CHECK(waits(test, false) == 1);
  CHECK(waits(test, true) == layers + 1);
}

TEST_CASE("times: an error on the device ends the run, timed or not") {
  for (const bool timed : {false, true}) {
    for (const std::uint64_t after : {0, 3, 9, 14}) {
      auto run = small_run(simulated_gpu(lateness::none));
      run.timed = timed;
      run.iterate(1);
      gpu::simulated::inject(gpu::simulated::fault_kind::kernel, after);
      CHECK_THROWS_WITH_AS(run.iterate(3), doctest::Contains("illegal memory access"),
                           const std::runtime_error&);
    }
  }
}
