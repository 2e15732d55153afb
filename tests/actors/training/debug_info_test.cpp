#include "actors/training/debug_info.hpp"

#include "cpu/cpu_device.hpp"
#include "tests/models/nets.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {

struct lines : progress {
  std::vector<std::string> all;
  void trained(const iteration&, const std::vector<output_value>&) override {}
  void tested(std::size_t, std::uint64_t, const std::vector<double>&,
              const std::vector<output_value>&) override {}
  void snapshot(std::uint64_t, const std::string&, const std::string&) override {}
  void note(const std::string& line) override { all.push_back(line); }
};

}  // namespace

TEST_CASE("debug_info: says in Caffe's words what each kernel has written, at displayed clocks") {
  // y = w x with w = (2, -4) and x = 3, then a ReLU in place; loss = |y - 1|^2 / 2.
  const auto n = test::build(
      test::input("x", {1, 1}) + test::input("target", {1, 2}) +
      test::layer("ip", "InnerProduct", "x", "y",
                  "param { name: \"w\" } inner_product_param { num_output: 2 bias_term: false }") +
      test::layer("relu", "ReLU", "y", "y") +
      test::layer("loss", "EuclideanLoss", "y", "loss", "bottom: \"target\""));
  const std::vector<float> w{2, -4};
  parameter_values holder;
  holder.values = w.data();
  const std::vector<const parameter_values*> values{&holder};
  auto device = make_cpu_device();
  replica_options options;
  options.keep_all_diffs = true;
  const std::shared_ptr<replica> copy = device->make_replica(n, values, options);
  const std::vector<float> x{3}, target{1, 1};
  copy->write_data(n.layers[0].tops[0], x);
  copy->write_data(n.layers[1].tops[0], target);

  const auto to = std::make_shared<lines>();
  debug_info it({&n, copy, values, 5, to});
  const auto pass_of = [&](std::uint64_t clock) {
    for (std::size_t l = 2; l < n.layers.size(); ++l) {
      copy->at(l).forward({});
      it.forward(l, clock);
    }
    for (std::size_t l = n.layers.size(); l-- > 2;) {
      copy->at(l).backward({});
      it.backward(l, clock);
    }
  };
  pass_of(4);
  CHECK(to->all.empty());
  for (const std::uint64_t clock : {5u, 10u}) {
    to->all.clear();
    pass_of(clock);
    CHECK(to->all == std::vector<std::string>{"    [Forward] Layer ip, top blob y data: 9",
                                              "    [Forward] Layer ip, param blob w data: 3",
                                              "    [Forward] Layer relu, top blob y data: 3",
                                              "    [Forward] Layer loss, top blob loss data: 13",
                                              "    [Backward] Layer loss, bottom blob y diff: 3",
                                              "    [Backward] Layer relu, bottom blob y diff: 2.5",
                                              "    [Backward] Layer ip, param blob w diff: 7.5",
                                              "    [Backward] All net params (data, diff): L1 norm "
                                              "= (6, 15); L2 norm = (4.47214, 15)"});
  }
}
