// tests/gpu/streams/rig.hpp
//
// A replica of a small net on a simulated GPU, used as the actors use it: a thread that issues kernels, one that brings
// gradients home, and one that brings parameters in. Without CAF, so that ThreadSanitizer can judge what is ours.
#pragma once
#include "gpu/device.hpp"
#include "gpu/simulated/control.hpp"
#include "models/net/net_builder.hpp"
#include "models/random.hpp"
#include "tests/plain_arithmetic.hpp"

#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace poseidon::test {

/// A thread with a queue, as a detached actor is. It keeps its error for the test.
class lane {
 public:
  lane() : thread_([this] { run(); }) {}
  ~lane() {
    push({});
    thread_.join();
  }
  lane(const lane&) = delete;
  lane& operator=(const lane&) = delete;

  void push(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
    changed_.notify_one();
  }

  /// Until what has been pushed so far is done.
  void wait() {
    std::promise<void> done;
    push([&done] { done.set_value(); });
    done.get_future().wait();
  }

 private:
  void run() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !queue_.empty(); });
      const auto work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      if (!work) return;
      work();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::thread thread_;  // last: it uses the rest
};

inline constexpr const char* small_net = R"(
  name: "small"
  layer { name: "data" type: "Data" top: "data" top: "label" data_param { batch_size: 6 } }
  layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param { num_output: 4 kernel_size: 3
    weight_filler { type: "xavier" } } }
  layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool" pooling_param { kernel_size: 2 stride: 2 } }
  layer { name: "relu" type: "ReLU" bottom: "pool" top: "pool" }
  layer { name: "ip1" type: "InnerProduct" bottom: "pool" top: "ip1" inner_product_param { num_output: 12
    weight_filler { type: "xavier" } } }
  layer { name: "drop" type: "Dropout" bottom: "ip1" top: "ip1" }
  layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2" inner_product_param { num_output: 5
    weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
)";

inline net make_small_net() {
  build_options options;
  options.sources = [](const ::caffe::LayerParameter&, const spec_position&) {
    return std::vector<shape>{{6, 2, 8, 8}, {6}};
  };
  return build_net(parse_net(small_net, "small"), options);
}

/// Numbers that differ from place to place and from use to use.
inline float number(std::uint32_t use, std::size_t i) {
  return unit_float(random_words(use, random_use::filler, 7, i, 0)[0]) - 0.5f;
}

inline gpu::simulated::machine_options machine(gpu::simulated::lateness late) {
  gpu::simulated::machine_options m;
  m.late = late;
  return m;
}

inline constexpr gpu::simulated::lateness every_lateness[] = {
    gpu::simulated::lateness::none, gpu::simulated::lateness::copy_streams,
    gpu::simulated::lateness::compute_streams, gpu::simulated::lateness::all};

class rig {
 public:
  /// On a new machine, or the one that there is.
  explicit rig(std::optional<gpu::simulated::machine_options> machine, replica_options options = {})
      : machine_(machine), graph_(make_small_net()) {
    plugin_choice choice;
    choice.ordinals = {0};
    choice.math = device_math::fp32;
    device_ = gpu::make_device(choice, std::make_shared<device_with<>>());
    memory_ = device_->host_memory();
    std::vector<const parameter_values*> pointers;
    for (std::size_t p = 0; p < graph_.parameters.size(); ++p) {
      const auto size = static_cast<std::size_t>(count(graph_.parameters[p].shape));
      parameters_.emplace_back(size, memory_.get());
      for (std::size_t i = 0; i < size; ++i)
        parameters_.back()[i] = number(static_cast<std::uint32_t>(p), i);
      holders_.push_back(std::make_unique<parameter_values>());
      holders_.back()->values = parameters_.back().data();
      pointers.push_back(holders_.back().get());
    }
    replica_ = device_->make_replica(graph_, pointers, std::move(options));
  }

  /// After a failure much may still be under way: nothing of it is done any more.
  ~rig() {
    note([this] {
      if (!failed_) failed_ = std::make_exception_ptr(std::runtime_error("the test is over"));
    });
    for (lane* l : {&stream_, &copy_in_, &copy_out_}) l->wait();
    replica_.reset();
  }
  rig(const rig&) = delete;
  rig& operator=(const rig&) = delete;

  [[nodiscard]] const net& graph() const { return graph_; }
  [[nodiscard]] replica& copy() { return *replica_; }
  [[nodiscard]] const std::vector<host_values>& parameters() const { return parameters_; }
  [[nodiscard]] std::size_t loss() const { return graph_.outputs.front(); }

  /// Trains as actors would: each layer's next forward pass is issued as soon as its parameters are fresh, and nobody
  /// waits for the device. Returns the losses.
  /// Errors   what the device says has gone wrong.
  std::vector<float> train(std::uint64_t clocks, std::uint64_t first = 0) {
    std::vector<float> losses(clocks);
    for (std::uint64_t c = first; c < clocks; ++c) {
      for (std::size_t l = 0; l < graph_.layers.size(); ++l) {
        wait_for_parameters(l, c);
        issue_forward(l, c);
      }
      stream_.push(guarded([this, c, &losses] { fetch_loss(c, losses); }));
      for (std::size_t l = graph_.layers.size(); l-- > 0;)
        if (graph_.layers[l].needs_backward) issue_backward(l, c);
    }
    for (std::size_t l = 0; l < graph_.layers.size(); ++l) wait_for_parameters(l, clocks);
    wait_until([this, clocks] { return losses_here_ == clocks; });
    return losses;
  }

  /// One pass with everything waited for, in the calling thread. Returns the loss.
  float step(std::uint64_t clock) {
    for (std::size_t l = 0; l < graph_.layers.size(); ++l) forward(l, clock);
    float found = 0;
    replica_->read_data(loss(), {&found, 1});
    for (std::size_t l = graph_.layers.size(); l-- > 0;)
      if (graph_.layers[l].needs_backward) replica_->at(l).backward(pass_of(clock));
    replica_->finish();
    for (std::size_t l = graph_.layers.size(); l-- > 0;) use_gradient(l, clock, nullptr);
    return found;
  }

  /// Forward passes alone, all issued without a wait between them, as in a test phase. Returns the losses.
  std::vector<float> test(std::uint64_t passes) {
    std::vector<float> losses(passes);
    for (std::uint64_t c = 0; c < passes; ++c) {
      for (std::size_t l = 0; l < graph_.layers.size(); ++l) issue_forward(l, c);
      stream_.push(guarded([this, c, &losses] { fetch_loss(c, losses); }));
    }
    wait_until([this, passes] { return losses_here_ == passes; });
    return losses;
  }

  /// Passes that do not wait for each other's gradients: pass c computes with the c-th of some values, which are put
  /// into place when it is issued, as with staleness. Returns the sums of all gradients' magnitudes, by pass.
  std::vector<double> run_ahead(std::uint64_t passes) {
    std::vector<double> sums(passes);
    std::deque<std::vector<host_values>> versions;
    for (std::uint64_t c = 0; c < passes; ++c) {
      auto& values = versions.emplace_back();
      for (std::size_t p = 0; p < parameters_.size(); ++p) {
        values.emplace_back(parameters_[p].size(), memory_.get());
        for (std::size_t i = 0; i < values[p].size(); ++i)
          values[p][i] = number(static_cast<std::uint32_t>(100 * c + p), i);
      }
    }
    for (std::uint64_t c = 0; c < passes; ++c) {
      for (std::size_t l = 0; l < graph_.layers.size(); ++l) {
        stream_.push(guarded([this, l, c, &versions] {
          for (const auto p : graph_.layers[l].parameters) {
            holders_[p]->values = versions[c][p].data();
            holders_[p]->version = c + 1;
          }
        }));
        issue_forward(l, c);
      }
      for (std::size_t l = graph_.layers.size(); l-- > 0;) {
        if (!graph_.layers[l].needs_backward) continue;
        wait_until([this, l, c] { return home_[l] == c; });
        issue_backward(l, c, &sums[c]);
      }
    }
    wait_until([this, passes] {
      for (std::size_t l = 0; l < graph_.layers.size(); ++l)
        if (!graph_.layers[l].parameters.empty() && home_[l] < passes) return false;
      return true;
    });
    replica_->finish();
    return sums;
  }

 private:
  /// A batch whose values are destroyed when its last user has released it.
  std::shared_ptr<const batch> next_batch(std::uint64_t clock) {
    auto b = std::make_unique<batch>();
    b->tops.emplace_back(6 * 2 * 8 * 8, memory_.get());
    b->tops.emplace_back(6, memory_.get());
    for (std::size_t i = 0; i < b->tops[0].size(); ++i)
      b->tops[0][i] = number(static_cast<std::uint32_t>(1000 + clock), i);
    for (std::size_t i = 0; i < 6; ++i) b->tops[1][i] = static_cast<float>((i + clock) % 5);
    auto* const raw = b.get();
    {
      const std::lock_guard lock(mutex_);
      batches_.push_back(std::move(b));
    }
    return {raw, [](batch* gone) {
              for (auto& top : gone->tops)
                std::fill(top.begin(), top.end(), std::numeric_limits<float>::quiet_NaN());
            }};
  }

  void issue_forward(std::size_t l, std::uint64_t clock) {
    stream_.push(guarded([this, l, clock] { forward(l, clock); }));
  }
  void forward(std::size_t l, std::uint64_t clock) {
    kernel& k = replica_->at(l);
    if (!is_source(graph_.layers[l])) return k.forward(pass_of(clock));
    const auto values = next_batch(clock);
    k.feed(*values);
    k.forward(pass_of(clock));
    replica_->keep(values);
  }

  /// Without `sum` the gradient updates the parameters.
  void issue_backward(std::size_t l, std::uint64_t clock, double* sum = nullptr) {
    stream_.push(guarded([this, l, clock, sum] {
      replica_->at(l).backward(pass_of(clock));
      if (!graph_.layers[l].parameters.empty())
        copy_out_.push(guarded([this, l, clock, sum] { copy_to_host(l, clock, sum); }));
      else
        note([&] { home_[l] = clock + 1; });
    }));
  }

  void copy_to_host(std::size_t l, std::uint64_t clock, double* sum) {
    replica_->bring_gradients(l, [this, l, clock, sum](std::exception_ptr failed) {
      copy_out_.push(guarded([this, l, clock, sum, failed] {
        if (failed) std::rethrow_exception(failed);
        settle(l, clock, sum);
      }));
    });
  }

  void settle(std::size_t l, std::uint64_t clock, double* sum) {
    use_gradient(l, clock, sum);
    if (sum == nullptr) copy_in_.push(guarded([this, l] { replica_->bring_parameters(l); }));
    note([&] { home_[l] = clock + 1; });
  }

  void use_gradient(std::size_t l, std::uint64_t clock, double* sum) {
    for (const auto p : graph_.layers[l].parameters) {
      const auto gradient = replica_->gradient(p);
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        if (sum != nullptr)
          *sum += std::abs(double{gradient[i]});
        else
          parameters_[p][i] -= 0.1f * gradient[i];
      }
      if (sum == nullptr) holders_[p]->version = clock + 1;
    }
  }

  void fetch_loss(std::uint64_t clock, std::vector<float>& losses) {
    const std::size_t blobs[] = {loss()};
    const auto values = replica_->fetch(blobs);
    values->when_here([this, clock, &losses, values](std::exception_ptr failed) {
      copy_out_.push(guarded([this, clock, &losses, values, failed] {
        if (failed) std::rethrow_exception(failed);
        losses[clock] = values->values().at(0).at(0);
        note([&] { ++losses_here_; });
      }));
    });
  }

  [[nodiscard]] static pass pass_of(std::uint64_t clock) { return {clock, clock * 6, 11}; }

  void wait_for_parameters(std::size_t l, std::uint64_t clock) {
    if (!graph_.layers[l].parameters.empty())
      wait_until([this, l, clock] { return home_[l] >= clock; });
  }

  std::function<void()> guarded(std::function<void()> work) {
    return [this, work = std::move(work)] {
      try {
        {
          const std::lock_guard lock(mutex_);
          if (failed_) return;
        }
        work();
      } catch (...) {
        note([&] {
          if (!failed_) failed_ = std::current_exception();
        });
      }
    };
  }
  template <class F>
  void note(F change) {
    const std::lock_guard lock(mutex_);
    change();
    changed_.notify_all();
  }
  template <class F>
  void wait_until(F over) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return failed_ || over(); });
    if (failed_) std::rethrow_exception(failed_);
  }

  struct configured {
    explicit configured(const std::optional<gpu::simulated::machine_options>& m) {
      if (m) configure(*m);
    }
  } machine_;
  net graph_;
  std::shared_ptr<device> device_;
  std::shared_ptr<std::pmr::memory_resource> memory_;
  std::vector<host_values> parameters_;
  std::vector<std::unique_ptr<parameter_values>> holders_;
  std::vector<std::unique_ptr<batch>> batches_;
  std::unique_ptr<replica> replica_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::size_t, std::uint64_t> home_;  // by layer: passes whose gradients are settled
  std::uint64_t losses_here_ = 0;
  std::exception_ptr failed_;
  lane copy_in_, copy_out_, stream_;
};

}  // namespace poseidon::test
