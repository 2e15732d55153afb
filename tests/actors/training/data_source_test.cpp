#include "actors/training/data_source.hpp"

#include "tests/sim.hpp"

#include <doctest/doctest.h>

#include <barrier>
#include <stdexcept>

using namespace poseidon;

namespace {

/// Sample n has the value n; from sample 1000 on records are broken. A batch is filled by `threads` threads or not at all.
struct numbers final : sample_source {
  explicit numbers(std::ptrdiff_t threads) : all(threads) {}
  [[nodiscard]] std::uint64_t size() const override { return 1000; }
  [[nodiscard]] const std::vector<shape>& sample_shapes() const override { return shapes; }
  void fill(std::uint64_t n, std::span<const std::span<float>> tops) const override {
    all.arrive_and_wait();
    if (n >= 1000) throw std::runtime_error("record " + std::to_string(n) + " is broken");
    tops[0][0] = static_cast<float>(n);
  }

  std::vector<shape> shapes{{1}};
  mutable std::barrier<> all;
};

struct source_rig {
  explicit source_rig(std::size_t readers, std::uint64_t first = 0) {
    data_source_setup s;
    s.source = std::make_shared<numbers>(static_cast<std::ptrdiff_t>(readers));
    s.batch = readers;
    s.first_sample = [=](std::uint64_t n) { return first + n * readers; };
    s.readers = readers;
    s.node = failed.in;
    it = sim.spawn<data_source>("data_source data [0]", std::move(s));
    sim.tell(it, connect_data_source{layer.in});
    sim.settle();
  }
  void start(std::uint64_t clock) {
    sim.tell(it, start_pass{{clock_id{clock}, {}, {}}});
    sim.settle();
  }

  test::sim sim;
  test::probe<batch_ready> layer = sim.listen<batch_ready>();
  test::probe<training_failed> failed = sim.listen<training_failed>();
  handle<data_source> it;
};

}  // namespace

TEST_CASE(
    "data_source: each reader is a thread that fills a batch, and passes get theirs in order") {
  for (const std::size_t readers : {1, 3}) {
    CAPTURE(readers);
    source_rig t(readers);
    CHECK(t.layer.got->empty());
    for (std::uint64_t clock = 0; clock < 4; ++clock) t.start(clock);
    REQUIRE(t.layer.got->size() == 4);
    for (std::uint64_t clock = 0; clock < 4; ++clock) {
      const auto& got = (*t.layer.got)[clock];
      CHECK(got.pass.clock == clock_id{clock});
      CHECK(got.values->first_sample == clock * readers);
      for (std::size_t i = 0; i < readers; ++i)
        CHECK(got.values->tops[0][i] == static_cast<float>(clock * readers + i));
    }
  }
}

TEST_CASE("data_source: reads no further than it has batches, and on when one comes back") {
  source_rig t(1);
  constexpr std::size_t batches = 5;  // 2 ahead and 3 in use
  for (std::uint64_t clock = 0; clock < 9; ++clock) t.start(clock);
  REQUIRE(t.layer.got->size() == batches);
  for (std::size_t known = batches; known < 9; ++known) {
    (*t.layer.got)[known - batches].values.reset();
    t.sim.settle();
    CHECK(t.layer.got->size() == known + 1);
  }
}

TEST_CASE("data_source: a record that cannot be read ends the training with its reason") {
  source_rig t(2, 997);  // 997 998, then 999 1000
  REQUIRE(t.failed.got->size() == 1);
  CHECK(t.failed.got->front().text == "record 1000 is broken");
  CHECK(t.failed.got->front().exit_code == 2);
  t.start(0);
  REQUIRE(t.layer.got->size() == 1);
  CHECK(t.layer.got->front().values->tops[0] == host_values{997, 998});
  t.start(1);  // it does not try again; the node ends the actor
  CHECK(t.layer.got->size() == 1);
  CHECK(t.failed.got->size() == 1);
}
