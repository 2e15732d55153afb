#include "actors/training/layer.hpp"

#include "actors/core/trace.hpp"
#include "tests/sim.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace poseidon;

namespace {

struct recording_kernel : kernel {
  std::string log;
  std::int64_t issued_ns = 0;  // of the last pass
  std::string micro_batches;   // of backward passes
  void forward(const pass& p) override {
    log += "f" + std::to_string(p.clock);
    issued_ns = p.issued_ns;
  }
  void backward(const pass& p) override {
    log += "b" + std::to_string(p.clock);
    micro_batches += std::to_string(p.micro_batch);
    issued_ns = p.issued_ns;
  }
};

/// One layer with a parameter between one producer and one consumer.
struct middle_layer {
  test::sim sim;
  recording_kernel kernel;
  std::shared_ptr<int> replica = std::make_shared<int>();
  test::probe<issue_work> stream = sim.listen<issue_work>();
  test::probe<issue_work> copy_in = sim.listen<issue_work>();
  test::probe<bottom_ready> consumer = sim.listen<bottom_ready>();
  test::probe<top_diff_ready> producer = sim.listen<top_diff_ready>();
  test::probe<backward_done> push = sim.listen<backward_done>();
  handle<layer> it;

  explicit middle_layer(bool training = true, bool runs_backward = true,
                        std::uint64_t staleness = 0, bool is_asynchronous = false,
                        std::uint32_t passes_added = 1, std::uint32_t passes_per_update = 0) {
    layer_work_setup w;
    w.iterations = 4;
    w.passes_per_iteration = passes_per_update;
    w.place.name = "fc7";
    w.place.test_net = training ? -1 : 0;
    w.compute = &kernel;
    w.runs_backward = runs_backward;
    w.pin = [this, r = replica](const pass_id& p) {
      kernel.log += "p" + std::to_string(value(p.clock));
    };
    if (training) w.contribute = [](const pass_id&) {};
    layer_setup s;
    s.work = make_layer_work(std::move(w), is_asynchronous);
    s.waits_for = parameter_wait::of_its_clock;
    s.staleness = staleness;
    s.passes_per_update = passes_per_update;
    if (training)
      s.gradient = layer_gradient{
          is_asynchronous ? gradient_reuse::when_copied : gradient_reuse::immediately,
          passes_added};
    if (is_asynchronous) s.copy_in = copy_in.in;
    s.stream = stream.in;
    it = sim.spawn<layer>("layer fc7 [0]", std::move(s));
    sim.tell(it, connect_layer{{consumer.in}, {producer.in}, push.in});
    sim.settle();
  }
  ~middle_layer() {
    stream.got->clear();
  }  // the kept work holds reply ports: a circle of references
  middle_layer(const middle_layer&) = delete;
  middle_layer& operator=(const middle_layer&) = delete;
  template <class M>
  void tell(M m) {
    sim.tell(it, m);
    sim.settle();
  }
  static pass_id at(std::uint64_t clock) { return {clock_id{clock}, 0, 0}; }
};

}  // namespace

TEST_CASE("layer: forward waits for the bottom and for parameters of its clock, and no longer") {
  middle_layer t;
  t.tell(bottom_ready{middle_layer::at(5)});
  CHECK(t.stream.got->empty());
  t.tell(parameters_fresh{version_id{4}});
  CHECK(t.stream.got->empty());
  t.tell(parameters_fresh{version_id{5}});
  REQUIRE(t.stream.got->size() == 1);
  CHECK(t.consumer.got->size() == 1);  // immediately: the stream keeps the order
}

TEST_CASE(
    "layer: backward is issued when the top's diff is, and the token goes on to the producer") {
  middle_layer t;
  t.tell(parameters_fresh{version_id{0}});
  t.tell(bottom_ready{middle_layer::at(0)});
  CHECK(t.producer.got->empty());
  t.tell(top_diff_ready{middle_layer::at(0)});
  REQUIRE(t.stream.got->size() == 2);
  for (const auto& work : *t.stream.got) work.run();
  CHECK(t.kernel.log == "p0f0b0");
  CHECK(t.producer.got->size() == 1);
  CHECK(t.push.got->empty());  // only the stream knows when the gradient is complete
  t.tell(work_done{middle_layer::at(0), true, {}});
  CHECK(t.push.got->size() == 1);
}

TEST_CASE(
    "layer: one that no loss reaches pushes the zeros that its gradient is, without a kernel") {
  middle_layer t(true, false);
  t.tell(parameters_fresh{version_id{0}});
  t.tell(bottom_ready{middle_layer::at(0)});
  t.tell(top_diff_ready{middle_layer::at(0)});
  REQUIRE(t.stream.got->size() == 2);
  for (const auto& work : *t.stream.got) work.run();
  CHECK(t.kernel.log == "p0f0");
  t.tell(work_done{middle_layer::at(0), true, {}});
  CHECK(t.push.got->size() == 1);
}

TEST_CASE(
    "layer: on an asynchronous device a gradient is copied before the next pass may overwrite "
    "it") {
  middle_layer t(true, true, 1, true);
  t.tell(parameters_fresh{version_id{0}});
  CHECK(t.copy_in.got->size() == 1);  // immediately, whatever pass is under way
  for (std::uint64_t clock = 0; clock < 2; ++clock) {
    t.tell(bottom_ready{middle_layer::at(clock)});
    t.tell(top_diff_ready{middle_layer::at(clock)});
  }
  // The second pass is forward only: the gradient of the first is still on its way.
  REQUIRE(t.stream.got->size() == 3);
  CHECK(t.stream.got->at(1).to_host.begin);
  CHECK(t.producer.got->size() == 1);
  t.tell(work_done{middle_layer::at(0), true, {}});
  CHECK(t.push.got->size() == 1);
  REQUIRE(t.stream.got->size() == 4);
  CHECK(t.stream.got->at(3).label.backward);
  CHECK(t.producer.got->size() == 2);
}

TEST_CASE("layer: of passes that the device adds only the last one's gradient leaves") {
  middle_layer t(true, true, 0, true, 2);
  t.tell(parameters_fresh{version_id{0}});
  const auto whole_pass = [&](std::uint64_t clock, std::uint32_t micro_batch) {
    const pass_id p{clock_id{clock}, micro_batch, 0};
    t.tell(bottom_ready{p});
    t.tell(top_diff_ready{p});
  };
  whole_pass(0, 0);
  whole_pass(0, 1);  // does not wait for the first one's gradient
  REQUIRE(t.stream.got->size() == 4);
  for (const auto& work : *t.stream.got) work.run();
  CHECK(t.kernel.micro_batches == "01");
  const auto& got = *t.stream.got;
  CHECK_FALSE((got[1].to_host.begin || got[1].to_host.settle || got[1].results.reply));
  CHECK((got[3].to_host.begin && got[3].to_host.settle && got[3].results.reply));

  // The next clock's first pass overwrites the sum: it waits until the sum has been copied.
  t.tell(parameters_fresh{version_id{1}});
  whole_pass(1, 0);
  CHECK(t.stream.got->size() == 5);
  t.tell(work_done{{clock_id{0}, 1, 0}, true, {}});
  CHECK(t.push.got->size() == 1);
  CHECK(t.stream.got->size() == 6);
}

TEST_CASE("layer: in a test pass the token runs back without a kernel") {
  middle_layer t(false);
  t.tell(parameters_fresh{version_id{0}});
  t.tell(bottom_ready{middle_layer::at(0)});
  t.tell(top_diff_ready{middle_layer::at(0)});
  CHECK(t.stream.got->size() == 1);
  CHECK(t.producer.got->size() == 1);
}

TEST_CASE("layer: clock c+1 may begin while parameters of clock c still travel, but not compute") {
  middle_layer t;
  t.tell(parameters_fresh{version_id{0}});
  t.tell(bottom_ready{middle_layer::at(0)});
  t.tell(top_diff_ready{middle_layer::at(0)});
  t.tell(bottom_ready{middle_layer::at(1)});
  CHECK(t.stream.got->size() == 2);
  t.tell(parameters_fresh{version_id{1}});
  CHECK(t.stream.got->size() == 3);
}

TEST_CASE(
    "layer: with staleness s it computes with parameters of s clocks ago, and no older ones") {
  middle_layer t(true, true, 2);
  t.tell(parameters_fresh{version_id{0}});
  for (const std::uint64_t clock : {0u, 1u, 2u}) {
    t.tell(bottom_ready{middle_layer::at(clock)});
    t.tell(top_diff_ready{middle_layer::at(clock)});
  }
  CHECK(t.stream.got->size() == 6);
  t.tell(bottom_ready{middle_layer::at(3)});
  CHECK(t.stream.got->size() == 6);
  t.tell(parameters_fresh{version_id{1}});
  CHECK(t.stream.got->size() == 7);
}

TEST_CASE("layer: a kernel is told when it was issued, however late the stream runs it") {
  middle_layer t;
  const auto before = now_ns();
  t.tell(parameters_fresh{version_id{0}});
  t.tell(bottom_ready{middle_layer::at(0)});
  const auto between = now_ns();
  t.tell(top_diff_ready{middle_layer::at(0)});
  const auto after = now_ns();
  REQUIRE(t.stream.got->size() == 2);
  (*t.stream.got)[0].run();
  CHECK(t.kernel.issued_ns >= before);
  CHECK(t.kernel.issued_ns <= between);
  (*t.stream.got)[1].run();
  CHECK(t.kernel.issued_ns >= between);
  CHECK(t.kernel.issued_ns <= after);
}

TEST_CASE("layer: one that ends by an exception releases its neighbours") {
  middle_layer t;
  const auto references = [&] { return t.consumer.in.target()->strong_refs.load(); };
  const auto connected = references();
  t.tell(bottom_ready{middle_layer::at(0)});
  t.tell(bottom_ready{middle_layer::at(1)});  // of another pass
  CHECK(references() == connected - 1);
}

TEST_CASE("layer: one that has ended holds no replica, whoever has a handle to it") {
  middle_layer t;
  t.tell(shut_down{});
  CHECK(t.replica.use_count() == 1);
}

namespace {

/// A net's last layer, where passes turn back.
struct last_layer : middle_layer {
  test::probe<passes_held> held = sim.listen<passes_held>();
  last_layer() {
    sim.tell(it, connect_layer{{}, {producer.in}, push.in, held.in});
    tell(parameters_fresh{version_id{9}});
  }
  std::size_t issued() const { return stream.got->size(); }
};

}  // namespace

TEST_CASE("layer: where passes turn back, those of a clock that is held wait until they may go") {
  last_layer t;
  t.tell(bottom_ready{middle_layer::at(4)});
  CHECK(t.issued() == 2);  // forward, and immediately back
  t.tell(hold_passes{clock_id{5}});
  REQUIRE(t.held.got->size() == 1);
  CHECK_FALSE(t.held.got->back().begun);
  t.tell(bottom_ready{middle_layer::at(5)});
  CHECK(t.issued() == 2);
  t.tell(hold_passes{});
  CHECK(t.held.got->size() == 1);
  CHECK(t.issued() == 4);
}

TEST_CASE("layer: a clock of which one pass has turned back has begun there, and goes on") {
  last_layer t;
  t.tell(bottom_ready{{clock_id{4}, 0, 0}});
  t.tell(hold_passes{clock_id{4}});
  REQUIRE(t.held.got->size() == 1);
  CHECK(t.held.got->back().begun);
  t.tell(bottom_ready{{clock_id{4}, 1, 0}});
  CHECK(t.issued() == 4);
  t.tell(bottom_ready{middle_layer::at(5)});
  CHECK(t.issued() == 4);
}

TEST_CASE("layer: a net's first clock has not begun before its first pass has turned back") {
  last_layer t;
  t.tell(hold_passes{clock_id{0}});
  REQUIRE(t.held.got->size() == 1);
  CHECK_FALSE(t.held.got->back().begun);
}

TEST_CASE("layer: with outer steps a pass waits for this node's own update before it") {
  middle_layer t(true, true, 0, false, 1, 2);
  const auto at = [](std::uint64_t clock, std::uint32_t index) {
    return pass_id{clock_id{clock}, index, 0};
  };
  const auto pass = [&](const pass_id& p) {
    t.tell(bottom_ready{p});
    t.tell(top_diff_ready{p});
  };
  t.tell(parameters_fresh{version_id{5}});
  pass(at(5, 0));
  pass(at(5, 1));  // of the same iteration
  REQUIRE(t.stream.got->size() == 4);
  t.tell(bottom_ready{at(5, 2)});
  CHECK(t.stream.got->size() == 4);
  t.tell(parameters_fresh{version_id{5}, 1});
  CHECK(t.stream.got->size() == 5);
  t.tell(top_diff_ready{at(5, 2)});
  pass(at(5, 3));
  t.tell(bottom_ready{at(6, 0)});
  CHECK(t.stream.got->size() == 8);
  t.tell(parameters_fresh{version_id{6}});
  REQUIRE(t.stream.got->size() == 9);
  for (const auto& work : *t.stream.got) work.run();
  // Kernels hear of iterations, and of passes within one.
  CHECK(t.kernel.log == "p5f20b20p5f20b20p5f21b21p5f21b21p6f24");
  CHECK(t.kernel.micro_batches == "0101");
}
