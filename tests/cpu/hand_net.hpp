// tests/cpu/hand_net.hpp - nets written by hand for kernel tests: no file, no shape inference, and
// a diff for every blob if the test wants it.
#pragma once
#include "cpu/cpu_device.hpp"
#include "models/net/net.hpp"

#include <doctest/doctest.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace poseidon::test {

/// Numbers in [-1, 1) that look random and are the same everywhere.
inline std::vector<float> noise(std::size_t size, std::uint32_t seed) {
  std::vector<float> v(size);
  std::uint64_t state = 0x9E3779B97F4A7C15u * (seed + 1);
  for (float& x : v) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    x = static_cast<float>(static_cast<std::int32_t>(state >> 32)) / 2147483648.0f;
  }
  return v;
}

/// A net being written. Layers come in order; bottoms are found by name, tops that are no bottom
/// are new blobs.
struct hand_net {
  net n;
  bool all_diffs = false;  ///< propagate to every bottom, as force_backward does

  explicit hand_net(::caffe::Phase phase = ::caffe::TRAIN) { n.phase = phase; }

  std::size_t blob(const std::string& name) const {
    for (std::size_t i = n.blobs.size(); i-- > 0;) {
      if (n.blobs[i].name == name) return i;
    }
    FAIL("no blob " << name);
    return 0;
  }

  void input(const std::string& name, const shape& s) {
    layer("name: '" + name + "' type: 'Input' top: '" + name + "'", {s});
  }

  /// `text` is the layer's prototxt; shapes of the tops (those in place too) and of the parameters.
  void layer(const std::string& text, const std::vector<shape>& tops,
             const std::vector<shape>& parameters = {}) {
    net_layer l;
    REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &l.spec));
    l.name = l.spec.name();
    l.type = l.spec.type();
    for (const std::string& b : l.spec.bottom()) {
      l.bottoms.push_back(blob(b));
      const bool label = b == "label";
      const bool below = needs_.at(l.bottoms.back());
      l.propagate_down.push_back(!label && (all_diffs || below));
      l.needs_backward = l.needs_backward || l.propagate_down.back();
    }
    if (!parameters.empty()) l.needs_backward = true;
    for (int t = 0; t < l.spec.top_size(); ++t) {
      bool in_place = false;
      for (int b = 0; b < l.spec.bottom_size(); ++b)
        in_place = in_place || l.spec.bottom(b) == l.spec.top(t);
      if (in_place) {
        l.tops.push_back(blob(l.spec.top(t)));
        continue;
      }
      l.tops.push_back(n.blobs.size());
      n.blobs.push_back({l.spec.top(t), tops.at(static_cast<std::size_t>(t))});
      needs_.push_back(l.needs_backward);
    }
    const bool loss = l.type.size() > 4 && l.type.substr(l.type.size() - 4) == "Loss";
    l.loss_weights.assign(l.tops.size(), 0);
    if (loss) l.loss_weights[0] = l.spec.loss_weight_size() > 0 ? l.spec.loss_weight(0) : 1;
    if (l.type == "Accuracy")
      l.needs_backward = false, l.propagate_down.assign(l.bottoms.size(), false);
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      l.parameters.push_back(n.parameters.size());
      l.learn.push_back(true);
      net_parameter q;
      q.layer = n.layers.size();
      q.slot = p;
      q.name = l.name + "/" + std::to_string(p);
      q.shape = parameters[p];
      n.parameters.push_back(q);
    }
    n.layers.push_back(std::move(l));
  }

 private:
  std::vector<bool> needs_;
};

/// A replica of a hand-written net with parameters of its own.
struct running_net {
  const net& n;
  std::shared_ptr<device> dev;
  std::vector<std::vector<float>> parameters;
  std::vector<std::unique_ptr<parameter_values>> holders;
  std::unique_ptr<replica> r;
  pass now{0, 0, 7};

  explicit running_net(const net& graph, replica_options options = {},
                       std::shared_ptr<device> on = make_cpu_device())
      : n(graph), dev(std::move(on)) {
    std::vector<const parameter_values*> pointers;
    for (std::size_t p = 0; p < n.parameters.size(); ++p) {
      const auto size = static_cast<std::size_t>(count(n.parameters[p].shape));
      parameters.push_back(noise(size, static_cast<std::uint32_t>(100 + p)));
      const float scale = n.parameters[p].slot == 1 ? 0.1f : 0.3f;
      for (float& w : parameters.back()) w *= scale;
      holders.push_back(std::make_unique<parameter_values>());
      holders.back()->values = parameters.back().data();
      pointers.push_back(holders.back().get());
    }
    r = dev->make_replica(n, pointers, options);
    std::fill(pointers.begin(), pointers.end(), nullptr);  // the replica has its own
    dev->arithmetic()->enter_thread(options.threads);
  }

  void forward() {
    for (std::size_t i = 0; i < n.layers.size(); ++i) r->at(i).forward(now);
  }
  void backward() {
    for (std::size_t i = n.layers.size(); i-- > 0;) {
      if (n.layers[i].needs_backward) r->at(i).backward(now);
    }
    r->finish();
  }
  std::size_t size(std::size_t blob) const {
    return static_cast<std::size_t>(count(n.blobs[blob].shape));
  }
  std::size_t index(const std::string& name) const {
    for (std::size_t i = n.blobs.size(); i-- > 0;) {
      if (n.blobs[i].name == name) return i;
    }
    FAIL("no blob " << name);
    return 0;
  }
  void set(const std::string& name, const std::vector<float>& v) { r->write_data(index(name), v); }
  void set_diff(const std::string& name, const std::vector<float>& v) {
    r->write_diff(index(name), v);
  }
  std::vector<float> data(const std::string& name) const {
    std::vector<float> v(size(index(name)));
    r->read_data(index(name), v);
    return v;
  }
  std::vector<float> diff(const std::string& name) const {
    std::vector<float> v(size(index(name)));
    r->read_diff(index(name), v);
    return v;
  }
  std::vector<float> gradient(std::size_t p) const {
    const auto g = r->gradient(p);
    return {g.begin(), g.end()};
  }
  /// After changing `parameters` in place.
  void touch() {
    for (auto& h : holders) ++h->version;
  }
};

/// max|a - b| / max(max|b|, 1e-3), the measure of the reference set.
template <class A, class B>
double deviation(const A& a, const B& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0, largest = 1e-3;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
    if (!(a[i] == a[i])) return 1e30;
  }
  return worst / largest;
}

/// |a - b| / |b|
inline double distance(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double between = 0, length = 1e-6;
  for (std::size_t i = 0; i < a.size(); ++i) {
    between += std::pow(double{a[i]} - double{b[i]}, 2);
    length += std::pow(double{b[i]}, 2);
  }
  return std::sqrt(between / length);
}

}  // namespace poseidon::test
