#include "gpu/replica.hpp"

#include "gpu/blob_memory.hpp"
#include "gpu/fetched_blobs.hpp"
#include "gpu/gradient_group.hpp"
#include "gpu/host_layer.hpp"
#include "gpu/resizing.hpp"
#include "gpu/shared_gradient.hpp"
#include "gpu/source.hpp"
#include "gpu/traffic.hpp"

#include <algorithm>
#include <cmath>
#include <future>
#include <stdexcept>

namespace poseidon::gpu {
namespace {

void finish(stream& s) {
  event over(s.device());
  record(over, s);
  synchronise(over);
}

/// Ends when nothing enqueued uses the memory of a replica any more, nor will be told of it.
class last_to_leave {
 public:
  explicit last_to_leave(context& with) : with_(with) {}
  ~last_to_leave() {
    for (stream* s : {&with_.copy_in, &with_.compute, &with_.copy_out}) {
      try {
        finish(*s);
        std::promise<void> told;
        with_.waits.after(*s, [&told](const std::exception_ptr&) { told.set_value(); });
        told.get_future().wait();
      } catch (const error&) {
        // The device is lost, and says so to whoever uses it next.
      }
    }
  }
  last_to_leave(const last_to_leave&) = delete;
  last_to_leave& operator=(const last_to_leave&) = delete;

 private:
  context& with_;
};

class gpu_replica final : public replica {
 public:
  gpu_replica(std::shared_ptr<context> with, std::shared_ptr<std::pmr::memory_resource> host,
              std::shared_ptr<poseidon::device> cpu, const net& n,
              std::span<const parameter_values* const> parameters, replica_options options)
      : with_(std::move(with)),
        host_(std::move(host)),
        cpu_(std::move(cpu)),
        sources_(parameters.begin(), parameters.end()),
        state_{n,
               std::move(options),
               with_->device,
               with_->compute,
               with_->libraries,
               {},
               {},
               {},
               {},
               {},
               {},
               0,
               {}} {
    for (const net_blob& b : n.blobs) state_.extents.push_back(b.shape);
    state_.blobs.resize(n.blobs.size());
    for (std::size_t b = 0; b < n.blobs.size(); ++b) state_.blobs[b].extents = &state_.extents[b];
    check_types();
    allocate_blobs(state_);
    take_parameters();
    make_kernels();
    if (state_.scratch_bytes > 0)
      state_.scratch =
          claim(with_->compute, state_.scratch_bytes, "scratch memory of " + name(), smaller_batch);
    finish();  // zeros are there before another stream looks
  }
  ~gpu_replica() override {
    if (group_ != nullptr) group_->leave();
  }

  kernel& at(std::size_t layer) override { return *kernels_.at(layer); }

  std::span<float> gradient(std::size_t parameter) override {
    if (gradients_.empty()) return {};
    return gradients_.at(parameter);
  }
  shape extents(std::size_t blob) const override { return state_.extents.at(blob); }

  void read_data(std::size_t blob, std::span<float> to) const override {
    const gpu_blob& b = checked(blob, to.size());
    read(b.data, to.first(b.values()));
    std::fill(to.begin() + static_cast<std::ptrdiff_t>(b.values()), to.end(), 0.0f);
  }
  void write_data(std::size_t blob, std::span<const float> from) override {
    const gpu_blob& b = checked(blob, from.size());
    write(b.data, from.first(b.values()));
  }
  void read_diff(std::size_t blob, std::span<float> to) const override {
    const gpu_blob& b = checked_diff(blob, to.size());
    read(b.diff, to.first(b.values()));
    std::fill(to.begin() + static_cast<std::ptrdiff_t>(b.values()), to.end(), 0.0f);
  }
  void write_diff(std::size_t blob, std::span<const float> from) override {
    const gpu_blob& b = checked_diff(blob, from.size());
    write(b.diff, from.first(b.values()));
  }

  void bring_gradients(std::size_t layer, completion done) override {
    layer_traffic& t = *traffic_.at(layer);
    wait(with_->copy_out, t.made);
    std::vector<std::size_t> added;
    for (std::size_t i = 0; i < t.gradients.size(); ++i) {
      const std::size_t p = t.gradients[i];
      if (!t.complete[i]) continue;
      if (!is_added(p))
        copy_home(p);
      else if (std::find(added.begin(), added.end(), p) == added.end())
        added.push_back(p);
    }
    if (t.factors != nullptr) copy_home(*t.factors);
    if (added.empty()) return with_->waits.after(with_->copy_out, std::move(done));
    group_->contribute(place_, added, t.made, std::move(done));
  }

  std::shared_ptr<fetched_values> fetch(std::span<const std::size_t> blobs) override {
    return std::make_shared<fetched_blobs>(*with_, state_, blobs, host_);
  }

  void bring_parameters(std::size_t layer) override {
    for (const auto& p : traffic_.at(layer)->reads) p->bring(with_->copy_in);
  }

  void keep(std::shared_ptr<const void> what) override {
    // Only batches live outside, and they are read by the copies in.
    with_->waits.after(with_->copy_in, [held = std::move(what)](const std::exception_ptr&) {});
  }

  void finish() override {
    for (const auto& t : traffic_) wait(with_->copy_out, t->made);
    for (const auto& t : traffic_) {
      for (const std::size_t p : t->gradients)
        if (!is_added(p)) copy_home(p);
      if (t->factors != nullptr) copy_home(*t->factors);
    }
    gpu::finish(with_->copy_out);
    std::vector<std::byte> faults(state_.faults->bytes());
    state_.faults->copy(with_->compute, faults.data());
    gpu::finish(with_->compute);
    if (const auto fault = state_.faults->read(faults.data())) throw std::invalid_argument(*fault);
  }

  std::optional<std::string> first_nonfinite() const override {
    std::vector<float> values;
    for (const net_layer& l : state_.graph.layers) {
      for (const std::size_t p : l.parameters) {
        const float* w = sources_[p]->values.load(std::memory_order_acquire);
        const auto size = static_cast<std::size_t>(count(state_.graph.parameters[p].shape));
        if (w != nullptr && !all_finite({w, size})) return l.name;
      }
      for (const std::size_t t : l.tops) {
        values.resize(state_.blobs[t].values());
        if (state_.blobs[t].data == nullptr) continue;
        read(state_.blobs[t].data, values);
        if (!all_finite(values)) return l.name;
      }
    }
    return std::nullopt;
  }

  static std::size_t join(std::span<const std::shared_ptr<replica>> replicas) {
    auto& first = static_cast<gpu_replica&>(*replicas.front());
    std::vector<gpu_replica*> joined;
    std::vector<gradient_group::member> members;
    for (const auto& one : replicas) {
      auto& r = static_cast<gpu_replica&>(*one);
      // With keep_all_diffs somebody looks at the gradients of one replica.
      if (!r.state_.has_backward() || r.state_.options.keep_all_diffs ||
          !enable_copies(r.with_->device, first.with_->device))
        break;
      joined.push_back(&r);
      members.push_back({r.with_, addable(r.state_.graph, r.state_.gradients)});
    }
    if (joined.size() < 2) return 1;
    const auto& added = members.front().gradients;
    if (std::all_of(added.begin(), added.end(), [](const float* g) { return g == nullptr; }))
      return 1;
    const auto group = std::make_shared<gradient_group>(
        std::move(members),
        std::vector<std::span<float>>(first.gradients_.begin(), first.gradients_.end()),
        first.state_.graph.name);
    for (std::size_t i = 0; i < joined.size(); ++i) {
      joined[i]->group_ = group;
      joined[i]->place_ = i;
      for (std::size_t p = 0; i > 0 && p < first.gradients_.size(); ++p)
        if (group->adds(p)) joined[i]->gradients_[p] = host_values(joined[i]->host_.get());
    }
    return joined.size();
  }

 private:
  static bool all_finite(std::span<const float> values) {
    return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
  }
  [[nodiscard]] std::string name() const { return "net \"" + state_.graph.name + "\""; }

  void check_types() {
    for (std::size_t l = 0; l < state_.graph.layers.size(); ++l) {
      const net_layer& layer = state_.graph.layers[l];
      if (!is_source(layer) && find_layer_type(layer.type) == nullptr &&
          !runs_on_host(layer.type, *cpu_))
        layer_context{state_, layer, l}.refuse("the GPU has no kernel for this type. It has " +
                                               known_layer_types() +
                                               ". Train this net with --devices cpu.");
    }
  }

  /// Device memory for the parameters' values and gradients.
  void take_parameters() {
    const net& n = state_.graph;
    for (std::size_t p = 0; p < n.parameters.size(); ++p) {
      const auto values = static_cast<std::size_t>(count(n.parameters[p].shape));
      try {
        parameters_.push_back(with_->parameter(*sources_[p], values));
      } catch (const error& e) {
        if (e.kind() != error_kind::memory) throw;
        throw explained(e, with_->device, values * sizeof(float),
                        "parameter " + n.parameters[p].name, larger_device);
      }
      state_.parameters.push_back(parameters_.back()->values());
    }
    state_.gradients.resize(n.parameters.size());
    state_.shared.resize(n.parameters.size());
    if (!state_.has_backward()) return;
    for (std::size_t p = 0; p < n.parameters.size(); ++p) {
      const auto values = state_.by_factors(n.parameters[p].layer)
                              ? 0
                              : static_cast<std::size_t>(count(n.parameters[p].shape));
      gradients_.emplace_back(values, host_.get());
      if (values != 0) state_.gradients[p] = gradient_memory(p, values);
    }
  }

  float* gradient_memory(std::size_t parameter, std::size_t values) {
    state_.memory.push_back(claim(
        with_->compute, values * sizeof(float),
        "the gradient of parameter " + state_.graph.parameters[parameter].name, larger_device));
    return state_.memory.back().floats();
  }

  void make_kernels() {
    const net& n = state_.graph;
    const std::vector<bool> resized = resized_blobs(n);
    find_shared_gradients();
    state_.faults = std::make_unique<fault_board>(with_->compute, n.layers.size());
    for (std::size_t l = 0; l < n.layers.size(); ++l) {
      const net_layer& layer = n.layers[l];
      const layer_context c{state_, layer, l};
      auto& traffic = *traffic_.emplace_back(std::make_unique<layer_traffic>(with_->device));
      for (std::size_t slot = 0; slot < layer.parameters.size(); ++slot) {
        const std::size_t p = layer.parameters[slot];
        traffic.reads.push_back(parameters_[p]);
        if (state_.gradients[p] != nullptr) traffic.gradients.push_back(p);
      }
      traffic.complete.resize(traffic.gradients.size(), true);
      if (state_.by_factors(l) && state_.has_backward()) traffic.factors = make_factors(c);
      const bool resizes = std::any_of(layer.bottoms.begin(), layer.bottoms.end(),
                                       [&](std::size_t b) { return resized[b]; });
      auto made = resizes ? make_resizing(c, [this](const auto& now) { return make_kernel(now); })
                          : make_kernel(c);
      kernels_.push_back(make_issuing(std::move(made), traffic, *with_, state_, layer));
    }
  }

  [[nodiscard]] std::unique_ptr<kernel> make_kernel(const layer_context& c) const {
    if (is_source(c.layer)) return make_source(c, *with_);
    if (const auto* type = find_layer_type(c.layer.type)) return type->make(c);
    return make_host_layer(c, *cpu_, *host_);
  }

  [[nodiscard]] std::unique_ptr<kept_factors> make_factors(const layer_context& c) const {
    auto f = std::make_unique<kept_factors>();
    f->u_values = c.top(0).values();
    f->v_values = c.bottom(0).values();
    const std::size_t values = f->u_values + f->v_values;
    f->on_device = claim(with_->compute, values * sizeof(float),
                         "the factors of layer \"" + c.layer.name + "\"", smaller_batch);
    f->at_home = host_values(values, host_.get());
    return f;
  }

  /// Parameters that several layers learn: memory for each of those.
  void find_shared_gradients() {
    const net& n = state_.graph;
    std::vector<std::size_t> writers(n.parameters.size());
    for (const net_layer& l : n.layers)
      for (std::size_t s = 0; s < l.parameters.size(); ++s)
        if (l.needs_backward && l.learn.at(s)) ++writers[l.parameters[s]];
    for (std::size_t p = 0; p < n.parameters.size(); ++p) {
      if (writers[p] < 2 || state_.gradients[p] == nullptr) continue;
      const auto values = static_cast<std::size_t>(count(n.parameters[p].shape));
      std::vector<float*> parts{state_.gradients[p]};
      while (parts.size() < writers[p]) parts.push_back(gradient_memory(p, values));
      state_.shared[p] =
          std::make_shared<shared_gradient>(with_->compute, std::move(parts), values);
    }
  }

  [[nodiscard]] bool is_added(std::size_t parameter) const {
    return group_ != nullptr && group_->adds(parameter);
  }

  void copy_home(std::size_t parameter) {
    host_values& to = gradients_[parameter];
    copy_to_host(with_->copy_out, to.data(), state_.gradients[parameter],
                 to.size() * sizeof(float));
  }
  void copy_home(kept_factors& f) {
    copy_to_host(with_->copy_out, f.at_home.data(), f.on_device.bytes(), f.on_device.size());
  }

  void read(const float* from, std::span<float> to) const {
    if (from == nullptr) return std::fill(to.begin(), to.end(), 0.0f);
    copy_to_host(with_->compute, to.data(), from, to.size_bytes());
    gpu::finish(with_->compute);
  }
  void write(float* to, std::span<const float> from) {
    if (to == nullptr) return;
    copy_to_device(with_->compute, to, from.data(), from.size_bytes());
    gpu::finish(with_->compute);
  }

  [[nodiscard]] const gpu_blob& checked(std::size_t blob, std::size_t size) const {
    const gpu_blob& b = state_.blobs.at(blob);
    const std::size_t whole = whole_size(state_, blob);
    if (size != whole)
      throw std::invalid_argument("blob \"" + state_.graph.blobs[blob].name + "\" holds " +
                                  std::to_string(whole) + " values, not " + std::to_string(size));
    return b;
  }
  [[nodiscard]] const gpu_blob& checked_diff(std::size_t blob, std::size_t size) const {
    const gpu_blob& b = checked(blob, size);
    if (b.diff == nullptr)
      throw std::invalid_argument(
          "blob \"" + state_.graph.blobs[blob].name +
          "\" has no diff: no layer needs it (replica_options::keep_all_diffs)");
    return b;
  }

  const std::shared_ptr<context> with_;
  const std::shared_ptr<std::pmr::memory_resource> host_;
  const std::shared_ptr<poseidon::device> cpu_;
  const std::vector<const parameter_values*> sources_;
  std::vector<std::shared_ptr<device_parameter>> parameters_;
  std::vector<host_values> gradients_;
  replica_state state_;
  std::vector<std::unique_ptr<layer_traffic>> traffic_;
  std::vector<std::unique_ptr<kernel>> kernels_;
  std::shared_ptr<gradient_group> group_;  // null: its gradients all come home
  std::size_t place_ = 0;                  // in the group
  const last_to_leave end_{*with_};        // last, so that it goes first
};

}  // namespace

std::size_t join(std::span<const std::shared_ptr<replica>> replicas) {
  return gpu_replica::join(replicas);
}

std::unique_ptr<replica> compile(std::shared_ptr<context> with,
                                 std::shared_ptr<std::pmr::memory_resource> host,
                                 std::shared_ptr<poseidon::device> cpu, const net& n,
                                 std::span<const parameter_values* const> parameters,
                                 replica_options options) {
  return std::make_unique<gpu_replica>(std::move(with), std::move(host), std::move(cpu), n,
                                       parameters, std::move(options));
}

}  // namespace poseidon::gpu
