// Solver updates on a device (device::make_updates()): the bits are the host's, whatever the device puts off, and nothing
// travels.
#include "cpu/cpu_device.hpp"
#include "tests/gpu/streams/several_replicas.hpp"

#include <algorithm>
#include <cmath>

using namespace poseidon;
using namespace poseidon::test;
using gpu::simulated::counted;
using gpu::simulated::lateness;

namespace {

constexpr std::uint64_t clocks = 4;
using arrays = std::vector<std::vector<float>>;

solver_rule rule_of(rule_kind kind, regularizer norm) {
  return {kind, norm, 0.9f, 0.999f, 0.98f, 1e-6f};
}
rule_step step_of(std::uint64_t clock, std::size_t parameter) {
  return {clock, 0.05f / static_cast<float>(parameter + 1), 0.004f, 0.5f};
}

updates_wanted all_by_gradient(const net& n, const solver_rule& rule) {
  updates_wanted w;
  w.rule = rule;
  w.by_gradient.resize(n.parameters.size(), true);
  w.by_factors.resize(n.parameters.size());
  return w;
}

struct outcome {
  arrays values, first, second;  // by parameter
  bool operator==(const outcome&) const = default;
};

/// Gradients are copied to the host, and the CPU updates.
outcome by_host(const std::vector<int>& ordinals, const solver_rule& rule) {
  several_replicas n(machine(lateness::none), ordinals, true);
  const auto cpu = make_cpu_device();
  outcome o;
  for (std::size_t p = 0; p < n.graph().parameters.size(); ++p) {
    o.first.emplace_back(n.values(p).size());
    o.second.emplace_back(history_count(rule.kind) > 1 ? n.values(p).size() : 0);
  }
  for (std::uint64_t c = 0; c < clocks; ++c) {
    n.train(c);
    const auto sums = n.sums();
    for (std::size_t p = 0; p < sums.size(); ++p) {
      const state_array history[] = {std::span(o.first[p]), std::span(o.second[p])};
      cpu->arithmetic()->update(rule, step_of(c, p), sums[p], n.values(p), n.values(p),
                                {history, history_count(rule.kind)});
    }
    n.publish(c + 1);
  }
  for (std::size_t p = 0; p < n.graph().parameters.size(); ++p)
    o.values.emplace_back(n.values(p).begin(), n.values(p).end());
  return o;
}

/// The copy-in stream, late: it was told of values that have been there for long.
void bring_again(several_replicas& n, std::size_t parameter) {
  for (std::size_t r = 0; r < n.replicas(); ++r)
    n.copy(r).bring_parameters(n.graph().parameters[parameter].layer);
}

/// In two parts each, as a shard updates chunks.
void update_all(several_replicas& n, device_updates& updates, std::uint64_t clock) {
  for (std::size_t p = 0; p < n.graph().parameters.size(); ++p) {
    const std::size_t all = n.values(p).size(), some = all / 3;
    if (some > 0) updates.update({p, 0, some}, step_of(clock, p), clock + 1);
    bring_again(n, p);
    updates.update({p, some, all - some}, step_of(clock, p), clock + 1);
    bring_again(n, p);
  }
}

outcome by_device(const gpu::simulated::machine_options& m, const std::vector<int>& ordinals,
                  const solver_rule& rule) {
  several_replicas n(m, ordinals, true);
  const auto updates = n.make_updates(all_by_gradient(n.graph(), rule));
  REQUIRE(updates != nullptr);
  for (std::uint64_t c = 0; c < clocks; ++c) {
    n.issue(c);
    update_all(n, *updates, c);
    n.publish(c + 1);
  }
  outcome o;
  for (std::size_t p = 0; p < n.graph().parameters.size(); ++p) {
    const std::size_t size = n.values(p).size();
    const bool there = updates->read_values(p, clocks, o.values.emplace_back(size));
    CHECK(there);
    updates->read_history({p, 0, size}, 0, o.first.emplace_back(size));
    o.second.emplace_back(history_count(rule.kind) > 1 ? size : 0);
    if (!o.second[p].empty()) updates->read_history({p, 0, size}, 1, o.second[p]);
  }
  return o;
}

}  // namespace

TEST_CASE("device updates: every rule gives the host's bits") {
  for (const auto kind : {rule_kind::sgd, rule_kind::nesterov, rule_kind::adagrad,
                          rule_kind::rmsprop, rule_kind::adadelta, rule_kind::adam})
    for (const auto norm : {regularizer::l2, regularizer::l1}) {
      CAPTURE(static_cast<int>(kind));
      CHECK(by_device(machine(lateness::none), {0}, rule_of(kind, norm)) ==
            by_host({0}, rule_of(kind, norm)));
    }
}

TEST_CASE(
    "device updates: the bits do not depend on what a device puts off, nor on where replicas are") {
  const auto rule = rule_of(rule_kind::sgd, regularizer::l2);
  for (const std::vector<int>& ordinals :
       {std::vector{0}, std::vector{0, 0}, std::vector{0, 1}, std::vector{0, 1, 0, 2}}) {
    const auto wanted = by_host(ordinals, rule);
    for (const lateness late : every_lateness) {
      CAPTURE(static_cast<int>(late));
      CHECK(by_device(machine(late), ordinals, rule) == wanted);
    }
  }
}

TEST_CASE(
    "device updates: no gradient is copied to the host, and only batches are copied to the "
    "device") {
  several_replicas n(machine(lateness::none), {0, 1}, true);
  const auto updates =
      n.make_updates(all_by_gradient(n.graph(), rule_of(rule_kind::sgd, regularizer::l2)));
  for (std::uint64_t c = 0; c < 2; ++c) {
    n.issue(c);
    update_all(n, *updates, c);
    n.publish(c + 1);
  }
  std::vector<float> values(n.values(0).size());
  CHECK(updates->read_values(0, 2, values));
  const auto before = counted();
  n.issue(2);
  update_all(n, *updates, 2);
  CHECK(updates->read_values(0, 3, values));
  const auto after = counted();
  CHECK(after.bytes_out - before.bytes_out == values.size() * sizeof(float));
  CHECK(after.bytes_in - before.bytes_in == 2 * (6 * 2 * 8 * 8 + 6) * sizeof(float));
  // A gradient to the first device, and fresh values back.
  CHECK(after.bytes_between - before.bytes_between == 2 * n.gradient_bytes());
  CHECK(n.copy(0).gradient(0).empty());
}

TEST_CASE("device updates: solver state of a resumed run, and the version before") {
  several_replicas n(machine(lateness::all), {0}, true);
  auto wanted = all_by_gradient(n.graph(), rule_of(rule_kind::sgd, regularizer::l2));
  wanted.keeps_before = true;
  const auto updates = n.make_updates(wanted);
  const std::size_t size = n.values(0).size();
  std::vector<float> history(size), first(n.values(0).begin(), n.values(0).end()), now(size),
      older(size);
  for (std::size_t i = 0; i < size; ++i) history[i] = number(77, i);
  updates->write_history({0, 0, size / 2}, 0, std::span(history).first(size / 2));
  updates->write_history({0, size / 2, size - size / 2}, 0, std::span(history).subspan(size / 2));
  CHECK_FALSE(updates->read_values(0, 0, now));  // the host has them
  n.issue(0);
  // A rate of zero: momentum alone moves the values.
  updates->update({0, 0, size}, {0, 0, 0, 1}, 1);
  REQUIRE(updates->read_values(0, 1, now));
  REQUIRE(updates->read_values(0, 0, older));
  CHECK(older == first);
  for (std::size_t i = 0; i < size; ++i) CHECK(now[i] == first[i] - 0.9f * history[i]);
  updates->update({0, 0, size}, {1, 0, 0, 1}, 2);
  REQUIRE(updates->read_values(0, 1, older));
  CHECK(older == now);
  CHECK_THROWS_WITH(updates->read_values(0, 0, older),
                    doctest::Contains("stands at version 2 on the device, version 0 is wanted"));
}

TEST_CASE("device updates: a gradient that factors make is the one that the layer makes") {
  const auto rule = rule_of(rule_kind::sgd, regularizer::l2);
  const auto n_of = make_small_net();
  const auto ip1 =
      static_cast<std::size_t>(std::find_if(n_of.layers.begin(), n_of.layers.end(),
                                            [](const auto& l) { return l.name == "ip1"; }) -
                               n_of.layers.begin());
  const auto weights = n_of.layers[ip1].parameters[0], bias = n_of.layers[ip1].parameters[1];
  for (const lateness late : every_lateness)
    for (const std::vector<int>& ordinals : {std::vector{0}, std::vector{0, 1}}) {
      several_replicas whole(machine(lateness::none), ordinals, true);
      whole.train(0);
      const auto gradients = whole.sums();
      const auto cpu = make_cpu_device();
      arrays wanted;
      for (const auto p : {weights, bias}) {
        auto& fresh = wanted.emplace_back(gradients[p].size());
        std::vector<float> history(fresh.size());
        const state_array slots[] = {std::span(history)};
        cpu->arithmetic()->update(rule, step_of(0, p), gradients[p], whole.values(p), fresh, slots);
      }

      replica_options options;
      options.by_factors.resize(n_of.layers.size());
      options.by_factors[ip1] = true;
      several_replicas n(machine(late), ordinals, true, options);
      updates_wanted w;
      w.rule = rule;
      w.by_gradient.resize(n_of.parameters.size());
      w.by_factors.resize(n_of.parameters.size());
      w.by_factors[weights] = w.by_factors[bias] = true;
      const auto updates = n.make_updates(w);
      REQUIRE(updates->holds(weights));
      CHECK_FALSE(updates->holds(0));
      n.train(0);
      const std::size_t outputs = n.values(bias).size(),
                        inputs = n.values(weights).size() / outputs;
      const factor_shape shape{6 * ordinals.size(), outputs, inputs};
      // The owner of the factors may end before the device has read them: then they are no numbers any more.
      struct factors {
        std::shared_ptr<std::pmr::memory_resource> memory;
        host_values u{memory.get()}, v{memory.get()};
        ~factors() {
          for (auto* values : {&u, &v})  // volatile, or the compiler leaves it away
            for (float& x : *values) const_cast<volatile float&>(x) = NAN;
        }
      };
      auto made = std::shared_ptr<factors>(new factors{n.host_memory()});
      auto &u = made->u, &v = made->v;
      u.resize(shape.u_values());
      v.resize(shape.rows * inputs);
      for (std::size_t r = 0; r < ordinals.size(); ++r)
        n.copy(r).at(ip1).factors(std::span(u).subspan(r * 6 * outputs, 6 * outputs),
                                  std::span(v).subspan(r * 6 * inputs, 6 * inputs));
      updates->update_by_factors(
          {shape, u, v, {{weights, step_of(0, weights)}, {bias, step_of(0, bias)}}, made}, 1);
      made = nullptr;
      n.publish(1);
      std::size_t i = 0;
      for (const auto p : {weights, bias}) {
        std::vector<float> values(n.values(p).size());
        REQUIRE(updates->read_values(p, 1, values));
        for (std::size_t k = 0; k < values.size(); ++k)
          CHECK(values[k] == doctest::Approx(wanted[i][k]).epsilon(1e-5));
        ++i;
      }
    }
}

TEST_CASE("device updates: what cannot be added on a device is left to the host") {
  {
    // the host adds the third
    several_replicas n(with_a_stranger(lateness::none), {0, 1, 2}, true);
    CHECK(n.joined == 2);
    CHECK(n.make_updates(all_by_gradient(n.graph(), {})) == nullptr);
    n.train(0);
    CHECK(n.sums().size() == n.graph().parameters.size());
  }
  several_replicas apart(machine(lateness::none), {0, 1}, false);
  CHECK(apart.make_updates(all_by_gradient(apart.graph(), {})) == nullptr);
}

TEST_CASE("device updates: solver state that does not fit is named") {
  auto m = machine(lateness::none);
  for (std::size_t bytes = 1 << 10; bytes < 400 << 10; bytes += 256) {
    m.devices[0].bytes = bytes;
    std::string said;
    try {
      several_replicas n(m, {0}, true);
      const auto updates = n.make_updates(all_by_gradient(n.graph(), rule_of(rule_kind::adam, {})));
    } catch (const gpu::error& e) {
      CHECK(e.kind() == gpu::error_kind::memory);
      said = e.what();
    }
    REQUIRE_FALSE(said.empty());
    if (said.find("solver state") == std::string::npos) continue;  // the net itself
    CHECK(said.find("are wanted for the solver state of ") != std::string::npos);
    CHECK(said.find("Use a device with more memory.") != std::string::npos);
    CHECK(counted().device_bytes == 0);
    return;
  }
  FAIL("there is no memory in which the net fits alone");
}

TEST_CASE("device updates: a device that is lost says so, and everything is given back") {
  for (const std::uint64_t kernel : {20, 45, 70, 95}) {
    auto m = machine(lateness::none);
    m.devices[0].lost_at_kernel = kernel;
    bool lost = false;
    try {
      (void)by_device(m, {0, 1}, rule_of(rule_kind::sgd, regularizer::l2));
    } catch (const gpu::error& e) {
      lost = e.kind() == gpu::error_kind::lost;
    }
    CHECK(lost);
    CHECK(counted().device_bytes == 0);
    CHECK(counted().streams == 0);
    CHECK(counted().events == 0);
  }
}

TEST_CASE("device updates: the rate of products is the device's own, by its clock") {
  auto m = machine(lateness::none);
  m.product_flop_s = 1e11;
  {
    several_replicas n(m, {0}, true);
    CHECK(n.on().told_flop_s().value() == doctest::Approx(1e11).epsilon(1e-6));
  }
  several_replicas still(machine(lateness::none), {0}, true);
  CHECK_FALSE(still.on().told_flop_s().has_value());
}
