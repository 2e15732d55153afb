// Layers that only the CPU has a kernel for, in a net on a GPU: what they and the layers behind them give is what the CPU
// gives, in whatever order streams run. Filter goes both ways and changes the batch; HDF5Output leaves a file.
#include "gpu/device.hpp"
#include "gpu/simulated/control.hpp"
#include "models/files/hdf5_file.hpp"
#include "tests/cpu/hand_net.hpp"
#include "tests/folder.hpp"
#include "tests/models/nets.hpp"

using namespace poseidon;
using namespace poseidon::test;
using gpu::simulated::lateness;

namespace {

constexpr lateness every_lateness[] = {lateness::none, lateness::copy_streams,
                                       lateness::compute_streams};

/// GPU 0 of a new machine.
std::shared_ptr<device> simulated_gpu(lateness late,
                                      device_layout layout = device_layout::automatic) {
  gpu::simulated::machine_options machine;
  machine.late = late;
  gpu::simulated::configure(machine);
  plugin_choice choice;
  choice.ordinals = {0};
  choice.math = device_math::fp32;
  choice.layout = layout;
  return gpu::make_device(choice, make_cpu_device());
}

std::string product(const std::string& name, const std::string& bottom, int outputs) {
  return layer(name, "InnerProduct", bottom, name,
               "inner_product_param { num_output: " + std::to_string(outputs) + " }");
}

/// A Filter between layers that learn.
net filtered_net() {
  return build(
      input("x", {5, 6}) + input("label", {5}) + input("chosen", {5}) + product("below", "x", 7) +
      R"(layer { name: "filter" type: "Filter" bottom: "below" bottom: "label" bottom: "chosen"
                          top: "some" top: "labels" })" +
      product("above", "some", 3) + layer("relu", "ReLU", "above", "above") +
      product("scores", "above", 3) +
      R"(layer { name: "loss" type: "SoftmaxWithLoss" bottom: "scores" bottom: "labels" top: "loss"
                          propagate_down: true propagate_down: false })");
}

const std::vector<float> labels{2, 0, 1, 1, 2};

/// Several batches through both nets, which share nothing.
void check_passes(running_net& gpu, running_net& cpu) {
  for (const std::vector<float>& chosen : std::vector<std::vector<float>>{
           {1, 1, 1, 1, 1}, {0, 2, 0, 0, 0}, {1, 0, -1, 0, 1}, {0, 0, 0, 0, 0}, {1, 0, 0, 1, 1}}) {
    for (running_net* r : {&gpu, &cpu}) {
      r->set("x", noise(30, static_cast<std::uint32_t>(chosen[0])));
      r->set("label", labels);
      r->set("chosen", chosen);
      r->forward();
      r->backward();
    }
    CHECK(gpu.r->extents(gpu.index("scores")) == cpu.r->extents(cpu.index("scores")));
    for (const std::string blob : {"some", "labels", "scores", "loss"}) {
      CAPTURE(blob);
      CHECK(deviation(gpu.data(blob), cpu.data(blob)) <= 2e-5);
    }
    for (std::size_t p = 0; p < cpu.n.parameters.size(); ++p) {
      CAPTURE(cpu.n.parameters[p].name);
      CHECK(deviation(gpu.gradient(p), cpu.gradient(p)) <= 2e-5);
    }
  }
}

}  // namespace

TEST_CASE("host layers: a Filter and all around it give what the CPU gives, batch after batch") {
  const net n = filtered_net();
  for (const lateness late : every_lateness) {
    CAPTURE(static_cast<int>(late));
    running_net cpu(n), gpu(n, {}, simulated_gpu(late));
    check_passes(gpu, cpu);
  }
}

TEST_CASE("host layers: factors of a layer behind a Filter are zero where no sample was chosen") {
  const net n = filtered_net();
  replica_options options;
  options.by_factors.resize(n.layers.size());
  std::size_t scores = 0;
  for (std::size_t l = 0; l < n.layers.size(); ++l)
    if (n.layers[l].name == "scores") scores = l;
  options.by_factors[scores] = true;
  running_net cpu(n, options), gpu(n, options, simulated_gpu(lateness::none));
  for (const std::vector<float>& chosen :
       std::vector<std::vector<float>>{{1, 1, 1, 1, 1}, {0, 1, 0, 0, 1}, {0, 0, 0, 0, 0}}) {
    std::vector<std::vector<float>> u, v;
    for (running_net* r : {&gpu, &cpu}) {
      r->set("x", noise(30, 1));
      r->set("label", labels);
      r->set("chosen", chosen);
      r->forward();
    }
    gpu.backward();
    gpu.r->at(scores).factors(u.emplace_back(15), v.emplace_back(15));
    for (std::size_t l = n.layers.size(); l-- > scores;)
      if (n.layers[l].needs_backward) cpu.r->at(l).backward(cpu.now);
    // before their memory is another's
    cpu.r->at(scores).factors(u.emplace_back(15), v.emplace_back(15));
    CHECK(deviation(u[0], u[1]) <= 2e-5);
    CHECK(deviation(v[0], v[1]) <= 2e-5);
  }
}

TEST_CASE("host layers: behind a Filter, too, layers do their neighbours' work") {
  const auto convolve = [](const std::string& bottom, const std::string& top) {
    return layer(top, "Convolution", bottom, top,
                 "convolution_param { num_output: 4 kernel_size: 3 pad: 1 }");
  };
  const net n = build(
      input("x", {5, 4, 6, 6}) + input("label", {5}) + input("chosen", {5}) +
      convolve("x", "below") + layer("relu", "ReLU", "below", "below") +
      R"(layer { name: "filter" type: "Filter" bottom: "below" bottom: "label" bottom: "chosen"
                          top: "some" top: "labels" })" +
      convolve("some", "above") + layer("norm", "BatchNorm", "above", "above") +
      layer("scale", "Scale", "above", "above", "scale_param { bias_term: true }") +
      layer("again", "ReLU", "above", "above") + convolve("above", "last") +
      layer("then", "ReLU", "last", "last") + product("scores", "last", 3) +
      R"(layer { name: "loss" type: "SoftmaxWithLoss" bottom: "scores" bottom: "labels" top: "loss"
                          propagate_down: true propagate_down: false })");
  for (const device_layout layout : {device_layout::nchw, device_layout::nhwc}) {
    CAPTURE(layout == device_layout::nhwc);
    running_net cpu(n), gpu(n, {}, simulated_gpu(lateness::none, layout));
    for (const std::vector<float>& chosen : std::vector<std::vector<float>>{
             {1, 1, 1, 1, 1}, {0, 2, 0, 0, 3}, {1, 0, -1, 0, 1}, {1, 0, 0, 1, 1}}) {
      for (running_net* r : {&gpu, &cpu}) {
        r->set("x", noise(5 * 4 * 36, 7));
        r->set("label", labels);
        r->set("chosen", chosen);
        r->forward();
        r->backward();
      }
      CHECK(deviation(gpu.data("loss"), cpu.data("loss")) <= 2e-5);
      for (std::size_t p = 0; p < cpu.n.parameters.size(); ++p) {
        CAPTURE(cpu.n.parameters[p].name);
        CHECK(deviation(gpu.gradient(p), cpu.gradient(p)) <= 2e-4);
      }
    }
  }
}

TEST_CASE("host layers: an output that is fetched has as many values as the net says") {
  const net n = build(
      input("x", {4, 1}) + input("chosen", {4}) +
          R"(layer { name: "filter" type: "Filter" bottom: "x" bottom: "chosen" top: "some" })" +
          layer("twice", "Power", "some", "twice", "power_param { scale: 2 }"),
      ::caffe::TEST);
  running_net r(n, {}, simulated_gpu(lateness::compute_streams));
  r.set("x", {1, 2, 3, 4});
  r.set("chosen", {0, 1, 0, 1});
  r.forward();
  const std::size_t blobs[] = {r.index("twice")};
  const auto values = r.r->fetch(blobs);
  r.r->finish();
  CHECK(values->values() == std::vector<std::vector<float>>{{4, 8, 0, 0}});
}

TEST_CASE("host layers: HDF5Output writes what the device has computed, pass after pass") {
  for (const lateness late : every_lateness) {
    CAPTURE(static_cast<int>(late));
    const temporary_folder here;
    const auto path = here.path() / "out.h5";
    const net n =
        build(input("x", {2, 3}) + input("label", {2}) +
                  layer("twice", "Power", "x", "twice", "power_param { scale: 2 }") +
                  R"(layer { name: "out" type: "HDF5Output" bottom: "twice" bottom: "label"
                                   hdf5_output_param { file_name: ")" +
                  path.string() + "\" } }",
              ::caffe::TEST);
    running_net r(n, {}, simulated_gpu(late));
    r.set("x", {1, 2, 3, 4, 5, 6});
    r.set("label", {7, 8});
    r.forward();
    r.set("x", {0, -1, -2, -3, -4, -5});
    r.forward();
    std::vector<float> data, label;
    CHECK(hdf5_reader(path).read("data", data) == shape{4, 3, 1, 1});
    CHECK(data == std::vector<float>{2, 4, 6, 8, 10, 12, 0, -2, -4, -6, -8, -10});
    hdf5_reader(path).read("label", label);
    CHECK(label == std::vector<float>{7, 8, 7, 8});
  }
}

TEST_CASE("host layers: the device knows which they are, and refuses what cannot be") {
  const auto gpu = simulated_gpu(lateness::none);
  for (const std::string type : {"Filter", "HDF5Output"}) {
    CHECK(gpu->supports(type));
    CHECK(gpu->on_host(type));
  }
  for (const std::string type : {"Convolution", "Data"}) {
    CHECK(gpu->supports(type));
    CHECK_FALSE(gpu->on_host(type));
  }
  CHECK_FALSE(gpu->supports("Python"));
  const net n =
      build(input("x", {4, 1}) + input("chosen", {4}) +
            R"(layer { name: "filter" type: "Filter" bottom: "x" bottom: "chosen" top: "some" })" +
            R"(layer { name: "split" type: "Split" bottom: "some" top: "one" top: "two" })" +
            R"(layer { name: "out" type: "HDF5Output" bottom: "one" bottom: "two"
                                 hdf5_output_param { file_name: "never" } })");
  CHECK_THROWS_WITH_AS((void)gpu->make_replica(n, {}, {}),
                       doctest::Contains("layer \"out\" (HDF5Output): it begins its file anew"),
                       const spec_error&);
}
