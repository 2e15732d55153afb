#include "gpu/replica.hpp"

#include "gpu/blob_memory.hpp"
#include "gpu/shared_gradient.hpp"
#include "gpu/source.hpp"
#include "gpu/traffic.hpp"

#include <algorithm>
#include <cmath>
#include <future>
#include <stdexcept>

namespace poseidon::gpu {
namespace {

/// Copies that the compute stream itself makes: what it computes next may overwrite the blobs.
class values_on_their_way final : public fetched_values,
                                  public std::enable_shared_from_this<values_on_their_way> {
 public:
  values_on_their_way(context& with, const replica_state& state, std::span<const std::size_t> blobs,
                      std::shared_ptr<std::pmr::memory_resource> host)
      : with_(with),
        host_(std::move(host)),
        faults_(*state.faults),
        faults_copy_(faults_.bytes() / sizeof(float), host_.get()) {
    for (const std::size_t b : blobs) {
      const gpu_blob& blob = state.blobs.at(b);
      values_.emplace_back(blob.values(), host_.get());
      copy_to_host(with.compute, values_.back().data(), blob.data, blob.values() * sizeof(float));
    }
    state.faults->copy(with.compute, faults_copy_.data());
    record(here_, with.compute);
  }

  /// Also says what a layer has found wrong with its bottoms by then.
  void when_here(completion done) override {
    with_.waits.when(std::move(here_), [self = shared_from_this(),
                                        done = std::move(done)](std::exception_ptr failed) {
      const auto fault = failed ? std::nullopt : self->faults_.read(self->faults_copy_.data());
      if (fault) failed = std::make_exception_ptr(std::invalid_argument(*fault));
      done(std::move(failed));
    });
  }

  std::vector<std::vector<float>> values() const override {
    std::vector<std::vector<float>> out;
    for (const auto& v : values_) out.emplace_back(v.begin(), v.end());
    return out;
  }

 private:
  context& with_;
  std::shared_ptr<std::pmr::memory_resource> host_;
  std::vector<host_values> values_;
  const fault_board& faults_;
  host_values faults_copy_;
  event here_ = with_.waits.take_event();
};

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
              const net& n, std::span<const parameter_values* const> parameters,
              replica_options options)
      : with_(std::move(with)),
        host_(std::move(host)),
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

  kernel& at(std::size_t layer) override { return *kernels_.at(layer); }

  std::span<float> gradient(std::size_t parameter) override {
    if (gradients_.empty()) return {};
    return gradients_.at(parameter);
  }
  shape extents(std::size_t blob) const override { return state_.extents.at(blob); }

  void read_data(std::size_t blob, std::span<float> to) const override {
    read(checked(blob, to.size()).data, to);
  }
  void write_data(std::size_t blob, std::span<const float> from) override {
    write(checked(blob, from.size()).data, from);
  }
  void read_diff(std::size_t blob, std::span<float> to) const override {
    read(checked_diff(blob, to.size()).diff, to);
  }
  void write_diff(std::size_t blob, std::span<const float> from) override {
    write(checked_diff(blob, from.size()).diff, from);
  }

  void bring_gradients(std::size_t layer, completion done) override {
    layer_traffic& t = *traffic_.at(layer);
    wait(with_->copy_out, t.made);
    for (std::size_t i = 0; i < t.gradients.size(); ++i)
      if (t.complete[i]) copy_home(t.gradients[i]);
    if (t.factors != nullptr) copy_home(*t.factors);
    with_->waits.after(with_->copy_out, std::move(done));
  }

  std::shared_ptr<fetched_values> fetch(std::span<const std::size_t> blobs) override {
    return std::make_shared<values_on_their_way>(*with_, state_, blobs, host_);
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
      for (const std::size_t p : t->gradients) copy_home(p);
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

 private:
  static bool all_finite(std::span<const float> values) {
    return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
  }
  [[nodiscard]] std::string name() const { return "net \"" + state_.graph.name + "\""; }

  void check_types() {
    for (std::size_t l = 0; l < state_.graph.layers.size(); ++l) {
      const net_layer& layer = state_.graph.layers[l];
      if (!is_source(layer) && find_layer_type(layer.type) == nullptr)
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
      auto made = is_source(layer) ? make_source(c, *with_) : find_layer_type(layer.type)->make(c);
      kernels_.push_back(make_issuing(std::move(made), traffic, *with_, state_, layer));
    }
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
    if (size != b.values())
      throw std::invalid_argument("blob \"" + state_.graph.blobs[blob].name + "\" holds " +
                                  std::to_string(b.values()) + " values, not " +
                                  std::to_string(size));
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
  const std::vector<const parameter_values*> sources_;
  std::vector<std::shared_ptr<device_parameter>> parameters_;
  std::vector<host_values> gradients_;
  replica_state state_;
  std::vector<std::unique_ptr<layer_traffic>> traffic_;
  std::vector<std::unique_ptr<kernel>> kernels_;
  const last_to_leave end_{*with_};  // last, so that it goes first
};

}  // namespace

std::unique_ptr<replica> compile(std::shared_ptr<context> with,
                                 std::shared_ptr<std::pmr::memory_resource> host, const net& n,
                                 std::span<const parameter_values* const> parameters,
                                 replica_options options) {
  return std::make_unique<gpu_replica>(std::move(with), std::move(host), n, parameters,
                                       std::move(options));
}

}  // namespace poseidon::gpu
