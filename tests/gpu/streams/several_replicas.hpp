// tests/gpu/streams/several_replicas.hpp
//
// Replicas of the small net on simulated GPUs, one or several, that compute one pass of each at a time.
#pragma once
#include "tests/gpu/streams/rig.hpp"

#include <doctest/doctest.h>

namespace poseidon::test {

/// Replicas of the small net on one device each, as compile_run() makes them; `joined` as join_gradients() said.
class several_replicas {
 public:
  several_replicas(const gpu::simulated::machine_options& m, const std::vector<int>& ordinals,
                   bool join, const replica_options& options = {}) {
    configure(m);
    graph_ = make_small_net();
    plugin_choice choice;
    choice.ordinals = ordinals;
    choice.math = device_math::fp32;
    device_ = gpu::make_device(choice, std::make_shared<device_with<>>());
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

  /// A pass of each replica in a thread of its own. Throws the first error, without waiting for the other
  /// replicas then.
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

  /// The sum of the gradients on the host, as gradient_sum computes it.
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

  /// Issues a pass of each replica from the calling thread, and waits for nothing. Several replicas also have their
  /// gradients brought.
  void issue(std::uint64_t clock) {
    for (std::size_t r = 0; r < replicas_.size(); ++r)
      compute(r, clock, *batches_.emplace_back(std::make_unique<batch>()));
    if (replicas_.size() == 1) return;
    for (std::size_t l = graph_.layers.size(); l-- > 0;)
      if (graph_.layers[l].needs_backward && !graph_.layers[l].parameters.empty())
        for (const auto& r : replicas_) r->bring_gradients(l, [](const std::exception_ptr&) {});
  }
  /// Enqueues a pass of one replica and has its gradients brought. Returns how often `done` is to be called.
  std::size_t issue_one(std::size_t r, std::uint64_t clock, const completion& done) {
    compute(r, clock, *batches_.emplace_back(std::make_unique<batch>()));
    std::size_t layers = 0;
    for (std::size_t l = graph_.layers.size(); l-- > 0;) {
      if (!graph_.layers[l].needs_backward || graph_.layers[l].parameters.empty()) continue;
      replicas_[r]->bring_gradients(l, done);
      ++layers;
    }
    return layers;
  }
  /// Ends a replica: all that its device was asked for has finished then.
  void end(std::size_t r) { replicas_[r] = nullptr; }

  /// Publishes the version that kernels compute with from now on.
  void publish(std::uint64_t version) {
    for (auto& h : holders_) h->version.store(version, std::memory_order_release);
  }

  [[nodiscard]] const net& graph() const { return graph_; }
  [[nodiscard]] device& on() { return *device_; }
  [[nodiscard]] replica& copy(std::size_t r) { return *replicas_[r]; }
  [[nodiscard]] std::size_t replicas() const { return replicas_.size(); }
  [[nodiscard]] host_values& values(std::size_t parameter) { return values_[parameter]; }
  [[nodiscard]] std::shared_ptr<device_updates> make_updates(const updates_wanted& wanted) {
    return device_->make_updates(replicas_, wanted);
  }

  std::size_t joined = 1;

  [[nodiscard]] std::shared_ptr<std::pmr::memory_resource> host_memory() const {
    return device_->host_memory();
  }

 private:
  void compute(std::size_t r, std::uint64_t clock, batch& b) {
    replica& it = *replicas_[r];
    const pass p{clock, (clock * replicas_.size() + r) * 6, 11};
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
      if (graph_.layers[l].needs_backward) it.at(l).backward(p);
    }
  }
  void pass_of(std::size_t r, std::uint64_t clock) {
    replica& it = *replicas_[r];
    compute(r, clock, fed_[r]);
    for (const net_layer& l : graph_.layers) {
      if (!l.needs_backward || l.parameters.empty()) continue;
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
  std::vector<std::unique_ptr<batch>> batches_;
  std::vector<batch> fed_;  // whose pass is given up may still be copied from
  std::vector<std::shared_ptr<replica>> replicas_;  // last: their end waits for what still tells
};

/// Device 2 has no peers.
inline gpu::simulated::machine_options with_a_stranger(gpu::simulated::lateness late) {
  auto m = machine(late);
  m.devices = {{}, {}, {.has_peers = false}, {}};
  return m;
}

}  // namespace poseidon::test
