// The solver state of the versions before the newest, which nodes that have lost others go back to: the same bits as those of a
// run that has stopped there.
#include "actors/parameters/server_shard.hpp"
#include "cpu/cpu_device.hpp"
#include "models/solver/solver_file.hpp"
#include "tests/actors/fakes.hpp"
#include "tests/sim.hpp"

#include <doctest/doctest.h>
#include <google/protobuf/text_format.h>

using namespace poseidon;

namespace {

constexpr chunk_id kept_chunk{0};
using state_arrays = std::vector<std::vector<float>>;
const state_arrays zero_state(1, std::vector<float>(5));
constexpr const char* momentum_rule = "type: 'SGD' momentum: 0.9";
constexpr const char* adam_rule = "type: 'Adam' momentum: 0.9 momentum2: 0.999 delta: 1e-8";

struct shard_options {
  const char* rule = momentum_rule;
  std::uint64_t former_states = 0, staleness = 0;
  wire_format format = wire_format::float32;
  std::optional<float> average_momentum;
  bool frozen = false;
};

/// A shard of one chunk of five values, which one worker pushes to, with the arithmetic of the CPU.
class a_shard {
 public:
  explicit a_shard(const shard_options& o) : options_(o) {
    server_shard_setup s;
    REQUIRE(google::protobuf::TextFormat::ParseFromString(o.rule, &s.solver));
    s.solver.set_base_lr(0.1f);
    s.solver.set_lr_policy("inv");
    s.solver.set_gamma(0.1f);
    s.solver.set_power(0.75f);
    s.solver.set_weight_decay(0.01f);
    s.workers = 2;
    s.update = rule_of(s.solver);
    s.parameters.push_back(test::one_parameter_net(5).parameters.front());
    s.parameters[test::only_parameter].average_momentum = o.average_momentum;
    s.first_uses = {layer_id{0}};
    s.names = {"fc7"};
    s.arithmetic = make_cpu_device()->arithmetic();
    s.store = store_ = test::one_parameter_store(5, 5, 1, o.staleness, o.format);
    s.former_states = o.former_states;
    shard_ = sim_.spawn<server_shard>("server_shard", std::move(s));
    fault_ = sim_.fault_of(shard_);
    sim_.tell(shard_, connect_shard{{{}, link_.in}, {gather_.in}, {}});
    for (auto& x : store_->at(kept_chunk, 3)) x = 0.5f;
    if (!o.frozen) sim_.tell(shard_, install_chunk{kept_chunk, version_id{3}});
    sim_.settle();
  }
  /// Both workers push, for the versions before this one.
  a_shard& trained_to(std::uint64_t version) {
    for (; clock_ < version; ++clock_)
      for (const unsigned worker : {0u, 1u}) {
        std::vector<float> g;
        for (int i = 0; i < 5; ++i)
          g.push_back(
              static_cast<float>((clock_ * 7 + worker * 3 + static_cast<unsigned>(i)) % 11) / 8.0f);
        const auto bytes = std::make_shared<std::vector<std::byte>>(wire_bytes(options_.format, 5));
        encode(options_.format, g, *bytes);
        sim_.tell(shard_, gradient_arrived{
                              worker_id{worker}, kept_chunk, clock_id{clock_}, {bytes, *bytes}});
      }
    sim_.settle();
    return *this;
  }
  /// What the shard gives away; empty: it has failed.
  state_arrays released(std::optional<std::uint64_t> version = std::nullopt) {
    release_history m{history_.in};
    if (version) m.version = version_id{*version};
    sim_.tell(shard_, m);
    sim_.settle();
    return history_.got->empty() ? state_arrays{} : history_.got->front().history->at(kept_chunk);
  }
  [[nodiscard]] const std::string& fault() const { return *fault_; }

 private:
  shard_options options_;
  test::sim sim_;
  std::shared_ptr<parameter_store> store_;
  test::probe<send_frame> link_ = sim_.listen<send_frame>();
  test::probe<chunk_fresh> gather_ = sim_.listen<chunk_fresh>();
  test::probe<history_released> history_ = sim_.listen<history_released>();
  handle<server_shard> shard_;
  std::uint64_t clock_ = 3;
  std::shared_ptr<const std::string> fault_;
};

}  // namespace

TEST_CASE("former_state: the state of a version before has the bits of a run that stopped there") {
  for (const auto* rule : {momentum_rule, adam_rule})
    for (const std::uint64_t staleness : {0, 2})
      for (const auto format :
           {wire_format::float32, wire_format::bfloat16, wire_format::int8, wire_format::int4}) {
        CAPTURE(rule);
        CAPTURE(staleness);
        shard_options o;
        o.rule = rule;
        o.staleness = staleness;
        o.format = format;
        const auto stopped_at = [&](std::uint64_t version) {
          return a_shard(o).trained_to(version).released();
        };
        auto keeps = o;
        keeps.former_states = staleness + 1;
        for (std::uint64_t back = 0; back <= staleness + 1; ++back) {
          CAPTURE(back);
          const auto state = a_shard(keeps).trained_to(10).released(10 - back);
          CHECK(state.size() == (rule == adam_rule ? 2 : 1));
          CHECK(state == stopped_at(10 - back));
          CHECK(state != stopped_at(10 - back - 1));
        }
        CHECK(a_shard(keeps).trained_to(10).released() == stopped_at(10));
      }
}

TEST_CASE("former_state: the first version of a view can be released, too") {
  shard_options o;
  o.former_states = 1;
  CHECK(a_shard(o).released(3) == zero_state);
  CHECK(a_shard(o).trained_to(4).released(3) == zero_state);
}

TEST_CASE("former_state: a version that is no longer kept, or not yet made, is refused with both") {
  shard_options o;
  o.former_states = 2;
  const auto fault_of = [&](std::uint64_t trained, std::uint64_t version) {
    a_shard s(o);
    CHECK(s.trained_to(trained).released(version).empty());
    return s.fault();
  };
  CHECK(fault_of(10, 7).find("solver state of chunk 0 as of a version that is no longer kept (got "
                             "7, expected 8)") != std::string::npos);
  CHECK(fault_of(10, 11).find("solver state of a version that chunk 0 has not reached (got 11, "
                              "expected 10)") != std::string::npos);
  o.former_states = 0;
  CHECK(fault_of(10, 9).find("no longer kept (got 9, expected 10)") != std::string::npos);
  CHECK(a_shard(o).trained_to(10).released(10) == a_shard(o).trained_to(10).released());
}

TEST_CASE("former_state: running statistics and frozen parameters have the same in every version") {
  shard_options o;
  o.former_states = 1;
  o.average_momentum = 0.9f;
  CHECK(a_shard(o).trained_to(9).released(8) == zero_state);
  CHECK(a_shard(o).trained_to(9).released(4) == zero_state);
  shard_options frozen;
  frozen.former_states = 1;
  frozen.frozen = true;
  CHECK(a_shard(frozen).released(50) == zero_state);
}

TEST_CASE("former_state: state of which a part has not arrived is not released") {
  const auto cut = test::one_parameter_store(5, 5, 1)->cut();
  solver_history history(cut, 1, {}, 1);
  history.add(kept_chunk);
  history.await(kept_chunk, 5);
  history.write(kept_chunk, 0, 0, std::vector<float>{1, 2, 3});
  CHECK_FALSE(history.is_complete(kept_chunk));
  CHECK_THROWS_WITH((void)history.release(),
                    "internal error: solver state of chunk 0, of which values have not arrived yet "
                    "(got 2, expected 0). Please report this.");
  history.write(kept_chunk, 0, 3, std::vector<float>{4, 5});
  CHECK(history.is_complete(kept_chunk));
  CHECK(history.release()->at(kept_chunk) == state_arrays(1, {1, 2, 3, 4, 5}));
}

TEST_CASE("former_state: more of it than caches hold is written past them, and less is not") {
  for (const std::int64_t values : {1 << 20, 5 << 20}) {
    CAPTURE(values);
    const auto store = test::one_parameter_store(values, 1 << 20, 1);
    solver_history history(store->cut(), 1, nullptr, 1);
    for (const auto chunk : store->cut().chunks.ids()) history.add(chunk);
    const auto arrays = history.to_update(kept_chunk, 3);
    REQUIRE(arrays.size() == 1);
    CHECK(arrays.front().past_caches == (values > 4 << 20));
  }
}
