// Long because nets and programs are tested in the same views.
#include "actors/parameters/lowrank_exchange.hpp"

#include "actors/parameters/send_order.hpp"
#include "tests/actors/fakes.hpp"
#include "tests/sim.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

using namespace poseidon;

namespace {

constexpr parameter_id weights{0}, bias{1};
constexpr lowrank_shape matrix{8, 10, 4};

std::vector<net_parameter> weights_and_bias() {
  return {{0, 0, "fc7/0", {8, 10}, 1, 1, {}}, {0, 1, "fc7/1", {8}, 2, 1, {}}};
}

/// What one worker has, whatever the view.
struct one_worker final : gradient_source {
  std::vector<float> of_weights = std::vector<float>(matrix.values()),
                     of_bias = std::vector<float>(8);
  std::shared_ptr<error_memory> memory = std::make_shared<error_memory>();
  std::vector<float> values = std::vector<float>(matrix.values(), 1.0f);  // that a view begins with
  bool has_gradient = true;

  explicit one_worker(unsigned seed) {
    std::mt19937 random(seed);
    for (auto& x : of_weights) x = static_cast<float>(random() % 1000) / 500 - 1;
    of_bias.assign(8, static_cast<float>(seed));
  }
  [[nodiscard]] std::span<const float> total(std::uint64_t, std::size_t i) const override {
    if (!has_gradient) return {};
    return i == 0 ? of_weights : of_bias;
  }
};

/// Brings frames to one worker, when it is told to.
struct wire : actor<wire> {
  static constexpr const char* type_name = "network_link";
  using accepts = messages<send_frame>;
  using sends = messages<lowrank_landed>;
  wire(actor_context context, worker_id from, port<lowrank_landed> to,
       std::shared_ptr<std::vector<send_frame>> log)
      : actor<wire>(context), from_(from), to_(std::move(to)), log_(std::move(log)) {}
  void on(const send_frame& m) {
    log_->push_back(m);
    const auto& f = std::get<frames::lowrank_factor>(m.header);
    tell(to_, lowrank_landed{from_, f.clock, f.second, m.data});
  }
  void ended() { to_ = {}; }

  worker_id from_;
  port<lowrank_landed> to_;
  std::shared_ptr<std::vector<send_frame>> log_;
};

/// The actors of one layer on all nodes of a view.
struct view_of {
  test::sim sim;
  std::vector<std::shared_ptr<one_worker>> workers;
  std::vector<std::shared_ptr<parameter_store>> stores;
  std::vector<handle<lowrank_exchange>> actors;
  std::shared_ptr<std::vector<send_frame>> sent = std::make_shared<std::vector<send_frame>>();
  test::probe<parameters_fresh> layer = sim.listen<parameters_fresh>();
  test::probe<layer_fresh> solver = sim.listen<layer_fresh>();
  test::probe<history_arrived> checkpointer = sim.listen<history_arrived>();
  std::uint64_t first;

  /// `of_programs`: they want the mean of the weights, and there is no bias. `rounded`: P and Q travel as bfloat16.
  explicit view_of(std::vector<std::shared_ptr<one_worker>> of, std::uint64_t first_clock = 0,
                   worker_id owner = worker_id{0}, std::uint64_t former = 1,
                   bool of_programs = false, bool rounded = false)
      : workers(std::move(of)), first(first_clock) {
    const auto parameters = weights_and_bias();
    partition cut;
    cut.chunks = {{weights, 0, 50, every_worker},
                  {weights, 50, 30, every_worker},
                  {bias, 0, 8, every_worker}};
    cut.by_parameter = {{chunk_id{0}, chunk_id{1}}, {chunk_id{2}}};
    cut.by_owner.resize(workers.size());
    for (std::size_t w = 0; w < workers.size(); ++w) {
      stores.push_back(std::make_shared<parameter_store>(parameters, cut, 2));
      workers[w]->memory->begin(matrix.values(), first, former);
      lowrank_exchange_setup s;
      s.layer = layer_id{7};
      s.name = "fc7";
      s.self = as_id<worker_id>(w);
      s.workers = workers.size();
      s.seed = 3;
      s.solver.set_base_lr(1);
      s.solver.set_lr_policy("fixed");
      if (!of_programs) s.update = solver_rule{};
      s.shape = matrix;
      s.rounded = rounded;
      s.parameters = {weights};
      if (!of_programs) s.parameters.push_back(bias);
      s.scale = of_programs ? 1.0f / static_cast<float>(workers.size()) : 1.0f;
      s.of_net = by_id<parameter_id, net_parameter>(parameters);
      s.gradient = workers[w];
      s.arithmetic = std::make_shared<test::plain_arithmetic>();
      s.store = stores[w];
      s.turns = std::make_shared<lowrank_turns>(owner, 0, 0, clock_id{first});
      s.memory = workers[w]->memory;
      s.former_states = former;
      s.overlap = std::make_shared<overlap_meter>(1);
      actors.push_back(sim.spawn<lowrank_exchange>("lowrank_exchange fc7", std::move(s)));
    }
    for (std::size_t w = 0; w < workers.size(); ++w) {
      connect_lowrank_exchange m{{}, {layer.in}, {}, solver.in, checkpointer.in};
      for (std::size_t to = 0; to < workers.size(); ++to)
        m.links.push_back(to == w ? port<send_frame>()
                                  : port<send_frame>(sim.spawn<wire>(
                                        "network_link", as_id<worker_id>(w), actors[to], sent)));
      sim.tell(actors[w], m);
      std::copy(workers[w]->values.begin(), workers[w]->values.end(),
                stores[w]->values(weights, first).begin());
      for (unsigned chunk = 0; chunk < (of_programs ? 2 : 3); ++chunk)
        sim.tell(actors[w], chunk_landed{chunk_id{chunk}, version_id{first}});
    }
    sim.settle();
  }
  void gradient(std::size_t w, std::uint64_t clock) {
    sim.tell(actors[w], backward_done{replica_id{0}, {clock_id{clock}, 0, 0}});
  }
  /// Of all workers.
  void train(std::uint64_t clock) {
    for (std::size_t w = 0; w < workers.size(); ++w) gradient(w, clock);
    sim.settle();
  }
  [[nodiscard]] std::vector<float> at(std::size_t w, parameter_id p) const {
    const auto now = stores[w]->current(p);
    return {now.begin(), now.end()};
  }
  /// The view ends; the next one begins with this version of what these have.
  void end(std::uint64_t version) {
    for (std::size_t w = 0; w < workers.size(); ++w) {
      const auto values = stores[w]->values(weights, version);
      workers[w]->values.assign(values.begin(), values.end());
    }
  }
  [[nodiscard]] bool all_equal() const {
    for (std::size_t w = 1; w < workers.size(); ++w)
      if (at(w, weights) != at(0, weights) || at(w, bias) != at(0, bias)) return false;
    return true;
  }
};

std::vector<std::shared_ptr<one_worker>> some(unsigned workers) {
  std::vector<std::shared_ptr<one_worker>> out;
  for (unsigned w = 0; w < workers; ++w) out.push_back(std::make_shared<one_worker>(w + 1));
  return out;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += double{a[i] - b[i]} * double{a[i] - b[i]};
  return std::sqrt(sum);
}

std::vector<float> memory_at(const one_worker& w, std::uint64_t version) {
  const auto values = w.memory->at(version);
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("lowrank_exchange: a version comes when all workers' P and then all their Q are in") {
  view_of t(some(3));
  REQUIRE(t.layer.got->size() == 3);  // the first values
  t.gradient(1, 0);
  t.gradient(0, 0);
  t.sim.settle();
  CHECK(t.layer.got->size() == 3);
  t.gradient(2, 0);
  t.sim.settle();
  CHECK(t.layer.got->size() == 6);
  CHECK(t.solver.got->back().version == version_id{1});
  CHECK(t.all_equal());
  CHECK(t.at(0, bias) == std::vector<float>(8, -2 * (1 + 2 + 3)));  // lr_mult 2; as it is
  // P out, the owner's to two, Q out, the owner's to two.
  REQUIRE(t.sent->size() == 8);
  for (std::size_t i = 0; i < 8; ++i) {
    const auto& f = std::get<frames::lowrank_factor>((*t.sent)[i].header);
    CHECK(f.second == (i >= 4));
    CHECK((*t.sent)[i].data.bytes.size() == sizeof(float) * (f.second ? 40 : 32 + 8));
    CHECK((*t.sent)[i].priority == forward_order(1, layer_id{7}));
  }
}

TEST_CASE("lowrank_exchange: what a clock does not send, and only that, is in the memories") {
  for (const bool rounded : {false, true}) {
    CAPTURE(rounded);
    view_of t(some(2), 0, worker_id{1}, 1, false, rounded);
    t.train(0);
    std::vector<float> sum(matrix.values()), left(matrix.values());
    for (const auto& w : t.workers)
      for (std::size_t i = 0; i < sum.size(); ++i) {
        sum[i] += w->of_weights[i];
        left[i] += w->memory->at(1)[i];
      }
    const auto now = t.at(0, weights);
    std::vector<float> sent(sum.size());
    for (std::size_t i = 0; i < sum.size(); ++i) sent[i] = 1 - now[i] + left[i];
    CHECK(distance(sent, sum) < 1e-4);
    CHECK(distance(left, std::vector<float>(sum.size())) > 0.1);
  }
}

TEST_CASE(
    "lowrank_exchange: rounded P and Q are half of the bytes; nodes are equal, and what is beside "
    "P is exact") {
  view_of t(some(3), 0, worker_id{0}, 1, false, true);
  for (std::uint64_t c = 0; c < 4; ++c) {
    t.train(c);
    CHECK(t.all_equal());
  }
  CHECK(t.at(0, bias) == std::vector<float>(8, -2 * 4 * (1 + 2 + 3)));
  for (const auto& m : *t.sent) {
    const bool second = std::get<frames::lowrank_factor>(m.header).second;
    CHECK(m.data.bytes.size() == (second ? 2 * 40 : 2 * 32 + sizeof(float) * 8));
  }
  view_of exact(some(3));
  for (std::uint64_t c = 0; c < 4; ++c) exact.train(c);
  CHECK(t.at(0, weights) != exact.at(0, weights));
  CHECK(distance(t.at(0, weights), exact.at(0, weights)) < 0.3);
}

TEST_CASE("lowrank_exchange: with the error memory a steady gradient arrives in full") {
  view_of t(some(2));
  const std::uint64_t clocks = 60;
  for (std::uint64_t c = 0; c < clocks; ++c) t.train(c);
  std::vector<float> sum(matrix.values()), mean(matrix.values());
  const auto now = t.at(1, weights);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] = t.workers[0]->of_weights[i] + t.workers[1]->of_weights[i];
    mean[i] = (1 - now[i]) / static_cast<float>(clocks);
  }
  CHECK(distance(mean, sum) < 0.05 * distance(sum, std::vector<float>(sum.size())));
}

TEST_CASE(
    "lowrank_exchange: whoever owns the sums, the bits are the same, and so in a second run") {
  const auto trained = [](worker_id owner) {
    view_of t(some(3), 0, owner);
    for (std::uint64_t c = 0; c < 5; ++c) t.train(c);
    CHECK(t.all_equal());
    return t.at(0, weights);
  };
  const auto right = trained(worker_id{0});
  CHECK(trained(worker_id{0}) == right);
  CHECK(trained(worker_id{1}) == right);
  CHECK(trained(worker_id{2}) == right);
}

TEST_CASE("lowrank_exchange: who is alone trains with what low rank leaves, too") {
  view_of t(some(1));
  for (std::uint64_t c = 0; c < 3; ++c) t.train(c);
  CHECK(t.layer.got->size() == 4);
  CHECK(t.sent->empty());
  CHECK(distance(memory_at(*t.workers[0], 3), std::vector<float>(matrix.values())) > 0);
}

TEST_CASE("lowrank_exchange: a newcomer begins without memory, and all nodes go on alike") {
  auto of = some(2);
  {
    view_of t(of);
    for (std::uint64_t c = 0; c < 4; ++c) t.train(c);
    t.end(4);
  }
  const auto kept = memory_at(*of[0], 4);
  of.push_back(std::make_shared<one_worker>(9));
  of.back()->values = of.front()->values;
  view_of t(of, 4);
  CHECK(memory_at(*of[0], 4) == kept);
  CHECK(memory_at(*of[2], 4) == std::vector<float>(matrix.values()));
  for (std::uint64_t c = 4; c < 8; ++c) {
    t.train(c);
    CHECK(t.all_equal());
  }
}

TEST_CASE("lowrank_exchange: after a loss the others go on alike, from the version that all have") {
  // The last worker's gradient of clock 4 does not come any more; or it is lost when one of the others has already P, or the version.
  for (const int steps : {0, 1, 2, 3, 5, 8, 12, 1000}) {
    CAPTURE(steps);
    auto of = some(3);
    std::vector<std::vector<float>> kept;
    {
      view_of t(of);
      for (std::uint64_t c = 0; c < 4; ++c) t.train(c);
      for (const auto& w : of) kept.push_back(memory_at(*w, 4));
      for (std::size_t w = 0; w < 3; ++w) t.gradient(w, 4);
      for (int i = 0; i < steps && t.sim.step(); ++i) {
      }
      t.end(4);
    }
    of.pop_back();
    view_of t(of, 4);
    CHECK(memory_at(*of[0], 4) == kept[0]);
    CHECK(memory_at(*of[1], 4) == kept[1]);
    t.train(4);
    t.train(5);
    CHECK(t.all_equal());
    CHECK(t.stores[1]->version(weights) == 6);
  }
}

TEST_CASE(
    "lowrank_exchange: the others go back to the version before the newest, with its memory") {
  auto of = some(3);
  std::vector<std::vector<float>> kept;
  {
    view_of t(of);
    for (std::uint64_t c = 0; c < 4; ++c) t.train(c);
    for (const auto& w : of) kept.push_back(memory_at(*w, 4));
    t.train(4);
    t.gradient(0, 5);  // one has begun the next clock while another one lacks a layer of version 5
    t.sim.settle();
    t.end(4);
  }
  of.pop_back();
  view_of t(of, 4);
  CHECK(memory_at(*of[0], 4) == kept[0]);
  CHECK(memory_at(*of[1], 4) == kept[1]);
  t.train(4);
  CHECK(t.all_equal());
}

TEST_CASE("lowrank_exchange: a gradient that is not finite ends in all weights of all nodes") {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    view_of t(some(2));
    t.workers[1]->of_weights[5] = bad;
    t.train(0);
    t.train(1);
    for (const std::size_t w : {0, 1}) {
      const auto now = t.at(w, weights);
      CHECK(t.stores[w]->version(weights) == 2);
      CHECK(std::all_of(now.begin(), now.end(), [](float x) { return std::isnan(x); }));
    }
  }
}

TEST_CASE("lowrank_exchange: gradients of zeros change nothing, and the next ones are sent") {
  view_of t(some(2));
  const auto first = t.workers[0]->of_weights, second = t.workers[1]->of_weights;
  for (const auto& w : t.workers) std::fill(w->of_weights.begin(), w->of_weights.end(), 0.0f);
  t.train(0);
  t.train(1);
  CHECK(t.at(0, weights) == std::vector<float>(matrix.values(), 1));
  t.workers[0]->of_weights = first;
  t.workers[1]->of_weights = second;
  t.train(2);
  CHECK(t.at(0, weights) != std::vector<float>(matrix.values(), 1));
  CHECK(t.all_equal());
}

TEST_CASE("lowrank_exchange: a snapshot has the state of all chunks, and a change gives it away") {
  view_of t(some(2));
  t.train(0);
  t.sim.tell(t.actors[0], copy_history{version_id{1}});
  t.sim.settle();
  REQUIRE(t.checkpointer.got->size() == 3);
  CHECK(test::values_of((*t.checkpointer.got)[2].values) == std::vector<float>(8, 1));
  const auto released = t.sim.listen<history_released>();
  t.sim.tell(t.actors[0], release_history{released.in, version_id{1}});
  t.sim.settle();
  REQUIRE(released.got->size() == 1);
  CHECK(released.got->front().history->size() == 3);
  // What comes afterwards is of a view that has ended.
  t.train(1);
  CHECK(t.stores[0]->version(weights) == 1);
}

TEST_CASE("lowrank_exchange: a part twice of one worker is a fault of ours, and is named") {
  view_of t(some(3));
  const auto fault = t.sim.fault_of(t.actors[0]);
  const auto part = payload_of(std::vector<float>(40));
  for (int i = 0; i < 2; ++i)
    t.sim.tell(t.actors[0], lowrank_landed{worker_id{1}, clock_id{0}, false, part});
  t.sim.settle();
  CHECK(fault->find("a part twice of worker 1") != std::string::npos);
}

namespace {

view_of programs(std::vector<std::shared_ptr<one_worker>> of, bool rounded = false) {
  return view_of(std::move(of), 0, worker_id{0}, 1, true, rounded);
}

}  // namespace

TEST_CASE("lowrank_exchange: a program gets the mean, and what it is not is in the memories") {
  for (const bool rounded : {false, true}) {
    CAPTURE(rounded);
    auto t = programs(some(2), rounded);
    t.train(0);
    CHECK(t.all_equal());
    const auto mean = t.at(0, weights);
    std::vector<float> twice(mean.size()), sent(mean.size());
    for (std::size_t i = 0; i < mean.size(); ++i) {
      twice[i] = 2 * mean[i];
      for (const auto& w : t.workers) sent[i] += w->of_weights[i] - w->memory->at(1)[i];
    }
    CHECK(distance(twice, sent) < 1e-4);
    CHECK(distance(twice, std::vector<float>(mean.size())) > 0.1);
  }
}

TEST_CASE("lowrank_exchange: where no program has a gradient nothing comes, and memories wait") {
  bool rounded = false;
  SUBCASE("float32") {}
  SUBCASE("bfloat16") {
    rounded = true;
  }
  auto t = programs(some(2), rounded);
  t.train(0);
  CHECK_FALSE(t.solver.got->back().nothing);
  const auto kept = memory_at(*t.workers[0], 1);
  for (const auto& w : t.workers) w->has_gradient = false;
  t.train(1);
  CHECK(t.solver.got->back().nothing);
  CHECK(t.stores[0]->mean(weights, 2) == parameter_store::mean_is::nothing);
  CHECK(memory_at(*t.workers[0], 2) == kept);
  t.workers[1]->has_gradient = true;
  t.train(2);
  CHECK_FALSE(t.solver.got->back().nothing);
  CHECK(t.stores[0]->mean(weights, 3) == parameter_store::mean_is::here);
  CHECK(t.all_equal());
  // The one without a gradient sends of what it had kept.
  CHECK(memory_at(*t.workers[0], 3) != kept);
}

TEST_CASE("lowrank_exchange: after a program's gradient that is not finite the next ones are") {
  bool rounded = false;
  SUBCASE("float32") {}
  SUBCASE("bfloat16") {
    rounded = true;
  }
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    auto t = programs(some(2), rounded);
    t.train(0);
    const auto good = std::exchange(t.workers[1]->of_weights[5], bad);
    t.train(1);
    for (const float x : t.at(0, weights)) CHECK(std::isnan(x));
    t.workers[1]->of_weights[5] = good;
    for (const std::uint64_t clock : {2, 3}) {
      t.train(clock);
      CHECK(t.all_equal());
      for (const float x : t.at(0, weights)) CHECK(std::isfinite(x));
    }
  }
}
