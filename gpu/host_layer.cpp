#include "gpu/host_layer.hpp"

#include "models/net/layer_rules.hpp"

#include <algorithm>

namespace poseidon::gpu {
namespace {

/// The layer as the second and last of a net: what it takes comes from the first, of type Input.
class net_of_one {
 public:
  explicit net_of_one(const layer_context& c) {
    n_.name = c.state.graph.name;
    n_.phase = c.state.graph.phase;
    net_layer alone = c.layer;
    net_layer input;
    input.name = "bottoms of " + c.layer.name;
    input.type = "Input";
    input.where = c.layer.where;
    for (std::size_t& b : alone.bottoms) b = place_of(c, b);
    for (std::size_t b = 0; b < n_.blobs.size(); ++b) input.tops.push_back(b);
    input.loss_weights.resize(input.tops.size());
    for (std::size_t& t : alone.tops) t = place_of(c, t);
    n_.layers = {std::move(input), std::move(alone)};
  }
  [[nodiscard]] const net& get() const { return n_; }
  [[nodiscard]] const net_layer& layer() const { return n_.layers[1]; }

 private:
  std::size_t place_of(const layer_context& c, std::size_t blob) {
    const auto found = std::find(known_.begin(), known_.end(), blob);
    if (found != known_.end()) return static_cast<std::size_t>(found - known_.begin());
    known_.push_back(blob);
    n_.blobs.push_back({c.state.graph.blobs[blob].name, *c.state.blobs[blob].extents});
    return n_.blobs.size() - 1;
  }

  net n_;
  std::vector<std::size_t> known_;  // by blob of n_: the net's own
};

class host_kernel final : public kernel {
 public:
  host_kernel(const layer_context& c, device& cpu, std::pmr::memory_resource& host)
      : context_(c), compute_(c.compute()), here_(c.state.device, event_use::waiting), net_(c) {
    if (!c.layer.parameters.empty())
      c.refuse(
          "the GPU has no kernel for this type, and only layers without parameters can run on the "
          "CPU beside it. Train this net with --devices cpu.");
    replica_options options;
    options.keep_all_diffs = c.state.options.keep_all_diffs;
    alone_ = cpu.make_replica(net_.get(), {}, options);
    const auto pinned = [&](const gpu_blob& b, bool wanted) {
      return host_values(wanted ? b.values() : 0, &host);
    };
    for (std::size_t i = 0; i < c.layer.bottoms.size(); ++i) {
      fed_.tops.push_back(pinned(c.bottom(i), true));
      bottoms_.push_back(
          {&c.bottom(i), net_.layer().bottoms[i], pinned(c.bottom(i), c.wants_diff(i))});
    }
    const bool goes_back = c.layer.needs_backward && c.state.has_backward();
    for (std::size_t i = 0; i < c.layer.tops.size(); ++i) {
      made_.push_back(pinned(c.top(i), true));
      tops_.push_back({&c.top(i), net_.layer().tops[i], pinned(c.top(i), goes_back)});
    }
  }

  void forward(const pass& p) override {
    for (std::size_t i = 0; i < bottoms_.size(); ++i)
      copy_home(bottoms_[i].on_device->data, fed_.tops[i], fed_.tops[i].size());
    wait_for_device();
    alone_->at(0).feed(fed_);
    for (const std::size_t l : {0, 1}) alone_->at(l).forward(p);
    for (std::size_t i = 0; i < tops_.size(); ++i) {
      const twin& t = tops_[i];
      context_.state.extents[context_.layer.tops[i]] = alone_->extents(t.on_host);
      alone_->read_data(t.on_host, made_[i]);
      copy_back(made_[i], t.on_device->data, t.on_device->values());
    }
  }

  /// The memory that the copies of forward() read does not change: only the next forward() writes it, after its own wait.
  void backward(const pass& p) override {
    for (twin& t : tops_)
      if (!t.diff.empty()) copy_home(t.on_device->diff, t.diff, t.on_device->values());
    wait_for_device();
    for (const twin& t : tops_)
      if (!t.diff.empty()) alone_->write_diff(t.on_host, t.diff);
    alone_->at(1).backward(p);
    for (twin& b : bottoms_) {
      if (b.diff.empty()) continue;
      alone_->read_diff(b.on_host, b.diff);
      copy_back(b.diff, b.on_device->diff, b.diff.size());
    }
  }

 private:
  /// A blob of the layer on both sides.
  struct twin {
    const gpu_blob* on_device;
    std::size_t on_host;  ///< blob of the net of one
    host_values diff;     ///< empty where no layer needs it
  };

  void copy_home(const float* from, host_values& to, std::size_t values) {
    copy_to_host(compute_, to.data(), from, values * sizeof(float));
  }
  void copy_back(const host_values& from, float* to, std::size_t values) {
    copy_to_device(compute_, to, from.data(), values * sizeof(float));
  }
  void wait_for_device() {
    record(here_, compute_);
    synchronise(here_);
  }

  const layer_context context_;
  stream& compute_;
  event here_;
  const net_of_one net_;
  std::unique_ptr<replica> alone_;
  std::vector<twin> bottoms_, tops_;
  batch fed_;                      // data of the bottoms, by bottom
  std::vector<host_values> made_;  // data of the tops, by top
};

}  // namespace

bool runs_on_host(std::string_view type, const device& cpu) {
  const auto* known = poseidon::find_layer_type(type);
  return known != nullptr && !known->source && find_layer_type(type) == nullptr &&
         cpu.supports(type);
}

std::unique_ptr<kernel> make_host_layer(const layer_context& c, device& cpu,
                                        std::pmr::memory_resource& host) {
  return std::make_unique<host_kernel>(c, cpu, host);
}

}  // namespace poseidon::gpu
