// Replicas whose gradients a device adds (device::join_gradients()): the bits, the bytes, and what goes wrong.
#include "tests/gpu_streams/rig.hpp"

#include <doctest/doctest.h>

using namespace poseidon;
using namespace poseidon::test;
using gpu::simulated::lateness;

namespace {

/// Replicas of the small net on one device each, as compile_run() makes them; `joined` as join_gradients() said.
class nets {
 public:
  nets(const gpu::simulated::machine_options& m, const std::vector<int>& ordinals, bool join,
       const replica_options& options = {}) {
    configure(m);
    graph_ = make_small_net();
    plugin_choice choice;
    choice.ordinals = ordinals;
    choice.math = device_math::fp32;
    device_ = gpu::make_device(choice, std::make_shared<plain_arithmetic>());
    std::vector<const parameter_values*> pointers;
    for (std::size_t p = 0; p < graph_.parameters.size(); ++p) {
      auto& values =
          values_.emplace_back(static_cast<std::size_t>(count(graph_.parameters[p].shape)),
                               device_->host_memory().get());
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = number(static_cast<std::uint32_t>(p), i);
      holders_.push_back(std::make_unique<parameter_values>());
      holders_.back()->values = values.data();
      pointers.push_back(holders_.back().get());
    }
    for (std::size_t r = 0; r < ordinals.size(); ++r) {
      auto of_replica = options;
      of_replica.index = r;
      replicas_.push_back(device_->make_replica(graph_, pointers, of_replica));
    }
    fed_.resize(replicas_.size());
    if (join) joined = device_->join_gradients(replicas_);
  }

  /// A pass of each replica in a thread of its own. Throws the first thing that has gone wrong; then nobody waits for
  /// the others.
  void train(std::uint64_t clock) {
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < replicas_.size(); ++r)
      threads.emplace_back([this, r, clock] {
        try {
          pass_of(r, clock);
        } catch (...) {
          fail(std::current_exception());
        }
      });
    for (auto& t : threads) t.join();
    if (failed_) std::rethrow_exception(failed_);
  }

  /// The sum as gradient_sum makes it of what is home.
  [[nodiscard]] std::vector<std::vector<float>> sums() const {
    std::vector<std::vector<float>> out;
    for (std::size_t p = 0; p < graph_.parameters.size(); ++p) {
      const auto first = replicas_[0]->gradient(p);
      auto& sum = out.emplace_back(first.begin(), first.end());
      for (std::size_t r = 1; r < replicas_.size(); ++r) {
        const auto more = replicas_[r]->gradient(p);
        CHECK(more.size() == (r < joined ? 0 : sum.size()));
        for (std::size_t i = 0; i < more.size(); ++i) sum[i] += more[i];
      }
    }
    return out;
  }
  [[nodiscard]] std::size_t gradient_bytes() const {
    std::size_t bytes = 0;
    for (const auto& v : values_) bytes += v.size() * sizeof(float);
    return bytes;
  }

  std::size_t joined = 1;

 private:
  void pass_of(std::size_t r, std::uint64_t clock) {
    replica& it = *replicas_[r];
    const pass p{clock, (clock * replicas_.size() + r) * 6, 11};
    batch& b = fed_[r];
    b.tops.clear();
    b.tops.emplace_back(6 * 2 * 8 * 8, device_->host_memory().get());
    b.tops.emplace_back(6, device_->host_memory().get());
    for (std::size_t i = 0; i < b.tops[0].size(); ++i)
      b.tops[0][i] = number(static_cast<std::uint32_t>(1000 + p.first_sample), i);
    for (std::size_t i = 0; i < 6; ++i) b.tops[1][i] = static_cast<float>((i + clock + r) % 5);
    for (std::size_t l = 0; l < graph_.layers.size(); ++l) {
      if (is_source(graph_.layers[l])) it.at(l).feed(b);
      it.at(l).forward(p);
    }
    for (std::size_t l = graph_.layers.size(); l-- > 0;) {
      if (!graph_.layers[l].needs_backward) continue;
      it.at(l).backward(p);
      if (graph_.layers[l].parameters.empty()) continue;
      const std::lock_guard lock(mutex_);
      ++under_way_;
    }
    for (std::size_t l = graph_.layers.size(); l-- > 0;)
      if (graph_.layers[l].needs_backward && !graph_.layers[l].parameters.empty())
        it.bring_gradients(l, [this](const std::exception_ptr& failed) {
          if (failed) fail(failed);
          const std::lock_guard lock(mutex_);
          --under_way_;
          changed_.notify_all();
        });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return failed_ || under_way_ == 0; });
  }
  void fail(const std::exception_ptr& what) {
    const std::lock_guard lock(mutex_);
    if (!failed_) failed_ = what;
    changed_.notify_all();
  }

  net graph_;
  std::shared_ptr<device> device_;
  std::vector<host_values> values_;
  std::vector<std::unique_ptr<parameter_values>> holders_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t under_way_ = 0;  // layers whose gradients have not been brought
  std::exception_ptr failed_;
  std::vector<batch> fed_;  // whose pass is given up may still be copied from
  std::vector<std::shared_ptr<replica>> replicas_;  // last: their end waits for what still tells
};

/// Device 2 has no peers.
gpu::simulated::machine_options with_a_stranger(lateness late) {
  auto m = machine(late);
  m.devices = {{}, {}, {.has_peers = false}, {}};
  return m;
}

}  // namespace

TEST_CASE("sums: replicas give the host's bits, and those without peers are left to the host") {
  const struct {
    std::vector<int> ordinals;
    std::size_t joined;
  } cases[] = {{{0, 1}, 2}, {{0, 0}, 2}, {{0, 1, 3, 1}, 4}, {{0, 3, 0, 3}, 4},
               {{0, 2}, 1}, {{2, 0}, 1}, {{2, 2}, 2},       {{0, 1, 2, 3}, 2}};
  for (const auto& c : cases) {
    std::vector<std::vector<std::vector<float>>> wanted;
    {
      nets host(with_a_stranger(lateness::nobody), c.ordinals, false);
      for (std::uint64_t clock = 0; clock < 3; ++clock) {
        host.train(clock);
        wanted.push_back(host.sums());
      }
    }
    for (const lateness late : every_lateness) {
      CAPTURE(static_cast<int>(late));
      nets device(with_a_stranger(late), c.ordinals, true);
      CHECK(device.joined == c.joined);
      for (std::uint64_t clock = 0; clock < 3; ++clock) {
        device.train(clock);
        CHECK(device.sums() == wanted[clock]);
      }
    }
  }
}

TEST_CASE("sums: what comes home does not grow with the number of replicas") {
  const std::vector<int> four = {0, 1, 2, 0};
  for (const std::size_t replicas : {1, 2, 3, 4}) {
    nets n(machine(lateness::nobody),
           {four.begin(), four.begin() + static_cast<std::ptrdiff_t>(replicas)}, true);
    n.train(0);
    const auto before = gpu::simulated::counted();
    n.train(1);
    const auto after = gpu::simulated::counted();
    CHECK(after.bytes_out - before.bytes_out == n.gradient_bytes());
    // The fourth lies on the first one's device: it is read there.
    CHECK(after.bytes_between - before.bytes_between ==
          (std::min<std::size_t>(replicas, 3) - 1) * n.gradient_bytes());
    CHECK(after.pageable_copies == before.pageable_copies);
  }
}

TEST_CASE("sums: whoever wants to see the gradients of one replica has them as before") {
  replica_options all;
  all.keep_all_diffs = true;
  nets n(machine(lateness::nobody), {0, 1}, true, all);
  CHECK(n.joined == 1);
  n.train(0);
  (void)n.sums();
}

TEST_CASE("sums: the memory for them is asked of the first device, which may not have it") {
  auto m = machine(lateness::nobody);
  for (std::size_t bytes = 1 << 10; bytes < 400 << 10; bytes += 256) {
    m.devices[0].bytes = bytes;
    std::string said;
    try {
      nets n(m, {0, 1}, true);
    } catch (const gpu::error& e) {
      CHECK(e.kind() == gpu::error_kind::memory);
      said = e.what();
    }
    REQUIRE_FALSE(said.empty());
    if (said.find("that GPU 1 sends") == std::string::npos) continue;  // the net itself
    CHECK(said.find("GPU 0 (simulated): ") != std::string::npos);
    CHECK(said.find("are wanted for gradients that GPU 1 sends there, of net \"small\"") !=
          std::string::npos);
    CHECK(said.find("are free. Name a GPU with more memory first in --devices") !=
          std::string::npos);
    CHECK(gpu::simulated::counted().device_bytes == 0);
    return;
  }
  FAIL("there is no memory in which the net fits alone");
}

TEST_CASE("sums: a device that is lost says so itself, and the others end") {
  for (const std::uint64_t kernel : {3, 40, 60, 80})
    for (const std::size_t lost : {0, 1}) {
      auto m = machine(lateness::nobody);
      m.devices[lost].lost_at_kernel = kernel;
      std::string said;
      try {
        nets n(m, {0, 1}, true);
        for (std::uint64_t clock = 0; clock < 8; ++clock) n.train(clock);
      } catch (const gpu::error& e) {
        CHECK(e.kind() == gpu::error_kind::lost);
        said = e.what();
      }
      CHECK(said.find("simulated GPU " + std::to_string(lost)) != std::string::npos);
      CHECK(gpu::simulated::counted().device_bytes == 0);
      CHECK(gpu::simulated::counted().pinned_bytes == 0);
    }
}

TEST_CASE("sums: everything is given back") {
  { nets(machine(lateness::everybody), {0, 1, 0}, true).train(0); }
  const auto now = gpu::simulated::counted();
  CHECK(now.device_bytes == 0);
  CHECK(now.pinned_bytes == 0);
  CHECK(now.streams == 0);
  CHECK(now.events == 0);
}
