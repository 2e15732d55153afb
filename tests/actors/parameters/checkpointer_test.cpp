#include "actors/parameters/checkpointer.hpp"

#include "tests/actors/fakes.hpp"
#include "tests/data/made_files.hpp"
#include "tests/sim.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace poseidon;

namespace {

/// A checkpointer of two nodes: chunk 0 of the one parameter is this node's, chunk 1 the other's.
struct snapshot_rig {
  test::sim sim;
  std::shared_ptr<parameter_store> store = test::one_parameter_store(4, 2, 2);
  test::probe<copy_history> shard = sim.listen<copy_history>();
  test::probe<send_frame> link = sim.listen<send_frame>();
  test::probe<snapshot_copied> copied = sim.listen<snapshot_copied>();
  test::probe<snapshot_written> written = sim.listen<snapshot_written>();
  int weights = 0;  // files written
  std::vector<float> history;
  handle<checkpointer> it;
  std::shared_ptr<const std::string> failure;

  snapshot_rig() {
    checkpointer_setup s;
    s.solver.set_base_lr(1);
    s.solver.set_lr_policy("fixed");
    s.solver.set_snapshot_prefix("run");
    it = sim.spawn<checkpointer>("checkpointer", std::move(s));
    failure = sim.fault_of(it);
    snapshot_files files;
    files.write_weights = [this](const std::string&, const parameter_arrays&) { ++weights; };
    files.write_state = [this](const std::string&, const solver_state& state) {
      history = state.history.at(0).at(0);
    };
    sim.tell(it, connect_checkpointer{std::move(files), store, {{}, link.in}, shard.in, {}});
    store->publish(test::only_parameter, 1);
    order(true);
  }
  snapshot_rig(const snapshot_rig&) = delete;
  snapshot_rig& operator=(const snapshot_rig&) = delete;

  void order(bool with_state) {
    sim.tell(it, write_snapshot{.version = version_id{1},
                                .samples = 10,
                                .with_state = with_state,
                                .copied = copied.in,
                                .written = written.in});
    sim.settle();
  }
  void piece(std::uint32_t chunk, std::uint64_t version = 1) {
    sim.tell(it, history_arrived{worker_id{chunk}, chunk_id{chunk}, 0, version_id{version},
                                 test::payload_of({1, 2})});
    sim.settle();
  }
  [[nodiscard]] bool says(const char* text) const {
    return failure->find(text) != std::string::npos;
  }
};

/// A checkpointer that writes small files, alone.
struct file_rig {
  test::temporary_folder folder;
  bool disk_full = false;
  test::sim sim;
  std::shared_ptr<parameter_store> store = test::one_parameter_store(4, 2, 2);
  test::probe<copy_history> shard = sim.listen<copy_history>();
  test::probe<snapshot_copied> copied = sim.listen<snapshot_copied>();
  test::probe<snapshot_written> written = sim.listen<snapshot_written>();
  handle<checkpointer> it;

  file_rig() {
    checkpointer_setup s;
    s.solver.set_base_lr(1);
    s.solver.set_lr_policy("fixed");
    s.solver.set_snapshot_prefix((folder / "run").string());
    it = sim.spawn<checkpointer>("checkpointer", std::move(s));
    snapshot_files files;
    files.write_weights = [](const std::string& stem, const parameter_arrays&) {
      test::write_file(stem + ".caffemodel", "weights");
    };
    files.write_state = [this](const std::string& stem, const solver_state&) {
      if (disk_full) throw std::runtime_error("the disk is full.");
      test::write_file(stem + ".solverstate", "state");
    };
    sim.tell(it, connect_checkpointer{std::move(files), store, {}, shard.in, {}});
  }
  snapshot_written snapshot(std::uint64_t version, bool regular = true, bool best = false) {
    copy({.version = version_id{version},
          .samples = 10,
          .copied = copied.in,
          .written = written.in,
          .regular = regular,
          .best = best});
    return written.got->back();
  }
  /// One that waits until all members have its version.
  void wait(std::uint64_t version) {
    copy({.version = version_id{version},
          .samples = 10,
          .copied = copied.in,
          .written = written.in,
          .at_floor = true});
  }
  void copy(const write_snapshot& order) {
    const auto version = value(order.version);
    store->publish(test::only_parameter, version);
    sim.tell(it, order);
    sim.settle();
    for (const std::uint32_t chunk : {0, 1})
      sim.tell(it, history_arrived{worker_id{0}, chunk_id{chunk}, 0, version_id{version},
                                   test::payload_of({1, 2})});
    sim.settle();
  }
  template <class M>
  void tell(M m) {
    sim.tell(it, std::move(m));
    sim.settle();
  }
  [[nodiscard]] std::string path(const std::string& name) const { return (folder / name).string(); }
  /// The stems of what is there, by name.
  [[nodiscard]] std::string models() const {
    std::set<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(folder.path()))
      names.insert(file.path().stem().string());
    std::string text;
    for (const auto& name : names) text += (text.empty() ? "" : " ") + name;
    return text;
  }
};

}  // namespace

TEST_CASE("checkpointer: training goes on when every piece of solver state has arrived") {
  snapshot_rig t;
  CHECK(t.shard.got->size() == 1);
  CHECK(t.link.got->size() == 1);
  t.piece(1);
  CHECK(t.copied.got->empty());
  t.piece(0);
  CHECK(t.copied.got->size() == 1);
  REQUIRE(t.written.got->size() == 1);
  CHECK(t.written.got->front().error.empty());
  CHECK(t.weights == 1);
  CHECK(t.history == std::vector<float>{1, 2, 1, 2});
}

TEST_CASE("checkpointer: a piece of solver state that comes twice completes no snapshot") {
  snapshot_rig t;
  t.piece(0);
  t.piece(0);
  CHECK(t.copied.got->empty());
  CHECK_MESSAGE(t.says("solver state of chunk 0, slot 0 twice (got 2, expected 1)"), *t.failure);
}

TEST_CASE("checkpointer: solver state of another version is no part of a snapshot") {
  snapshot_rig t;
  t.piece(0);
  t.piece(1, 2);
  CHECK(t.copied.got->empty());
  CHECK_MESSAGE(t.says("the version of solver state of chunk 1, slot 0 (got 2, expected 1)"),
                *t.failure);
}

TEST_CASE("checkpointer: state of a snapshot that was given up for one without state is ignored") {
  snapshot_rig t;
  t.piece(0);
  t.order(false);
  CHECK(t.copied.got->size() == 1);
  t.piece(1);
  CHECK(t.failure->empty());
}

TEST_CASE("checkpointer: weights whose state cannot be written do not stay alone") {
  file_rig t;
  const auto state_1 = t.path("run_iter_1.solverstate");
  CHECK(t.snapshot(1).newest_state == state_1);
  t.disk_full = true;
  const auto failed = t.snapshot(2);
  CHECK(failed.error == "the disk is full.");
  CHECK(failed.newest_state == state_1);
  CHECK(t.models() == "run_iter_1");

  test::write_file(t.path("run_iter_3.caffemodel"), "of an earlier run");
  CHECK_FALSE(t.snapshot(3).error.empty());
  CHECK(std::filesystem::exists(t.path("run_iter_3.caffemodel")));
}

TEST_CASE("checkpointer: one model is kept as the best, and only until a better one is whole") {
  file_rig t;
  const auto first = t.snapshot(1, false, true);
  CHECK(first.path.empty());
  CHECK(first.best_path == t.path("run_best_iter_1.caffemodel"));
  CHECK(t.models() == "run_best_iter_1");
  const auto both = t.snapshot(2, true, true);
  CHECK(both.path == t.path("run_iter_2.caffemodel"));
  CHECK(t.models() == "run_best_iter_2 run_iter_2");
  // Their weights are the same, so they are written once. A later one of that name changes only one of the two.
  CHECK(std::filesystem::hard_link_count(both.best_path) == 2);
  CHECK(std::filesystem::equivalent(both.path, both.best_path));
  t.disk_full = true;
  CHECK_FALSE(t.snapshot(3, false, true).error.empty());
  CHECK(t.models() == "run_best_iter_2 run_iter_2");
}

TEST_CASE(
    "checkpointer: where members may be lost, training goes on, and nothing is written before all "
    "members have the version") {
  file_rig t;
  t.wait(1);
  t.wait(2);
  CHECK(t.copied.got->size() == 2);
  CHECK(t.models().empty());
  t.tell(floor_reached{version_id{1}});
  CHECK(t.models() == "run_iter_1");
  REQUIRE(t.written.got->size() == 1);
  CHECK(t.written.got->back().path == t.path("run_iter_1.caffemodel"));
  t.tell(floor_reached{version_id{5}});
  CHECK(t.models() == "run_iter_1 run_iter_2");
  t.wait(3);  // that all have it was said before it was copied
  CHECK(t.models() == "run_iter_1 run_iter_2 run_iter_3");
}

TEST_CASE("checkpointer: of a clock that is trained again no file is written") {
  file_rig t;
  t.wait(1);
  t.wait(2);
  t.tell(go_back{version_id{1}});
  CHECK(t.models() == "run_iter_1");
  REQUIRE(t.written.got->size() == 2);
  CHECK(t.written.got->front().error.empty());
  CHECK(t.written.got->back().error == "a member was lost before all had its version.");
  t.tell(floor_reached{version_id{1}});
  t.wait(2);  // it is another one now
  CHECK(t.models() == "run_iter_1");
}

TEST_CASE("checkpointer: what can be written at the end of the run is") {
  file_rig t;
  t.wait(1);
  t.wait(2);
  t.sim.tell(t.it, shut_down{});  // past the other message
  t.sim.tell(t.it, floor_reached{version_id{1}});
  t.sim.settle();
  CHECK(t.models() == "run_iter_1");
}

TEST_CASE(
    "checkpointer: the node may have gone back before it is told, and then a later version is "
    "given up") {
  file_rig t;
  const write_snapshot order{.version = version_id{5},
                             .samples = 10,
                             .copied = t.copied.in,
                             .written = t.written.in,
                             .epoch = 0};
  t.store->publish(test::only_parameter, 1);
  t.tell(order);
  REQUIRE(t.written.got->size() == 1);
  CHECK(t.written.got->back().error == "a member was lost before it was copied.");
  CHECK(t.shard.got->empty());
  CHECK(t.copied.got->empty());
}

TEST_CASE("checkpointer: an order of a view that is over is answered, and nothing is gathered") {
  file_rig t;
  write_snapshot order{
      .version = version_id{1}, .samples = 10, .copied = t.copied.in, .written = t.written.in};
  SUBCASE("the next view has begun") {
    order.epoch = 7;  // this one is 0
    t.tell(order);
    CHECK(t.shard.got->empty());
  }
  SUBCASE("the next view begins before all has come") {
    order.epoch = 0;
    t.store->publish(test::only_parameter, 1);
    t.tell(order);
    CHECK(t.shard.got->size() == 1);
    t.tell(connect_checkpointer{{}, t.store, {}, t.shard.in, {}, 1});
  }
  REQUIRE(t.written.got->size() == 1);
  CHECK(t.written.got->back().error == "its view is over.");
  CHECK(t.copied.got->empty());
}
