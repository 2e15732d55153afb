// tests/models/nets.hpp - small nets as text, and where the reference values are.
#pragma once
#include "models/net/net_builder.hpp"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace poseidon::test {

/// The folder of Caffe's reference results; empty where it is not there.
inline std::filesystem::path oracle() {
  const char* named = std::getenv("POSEIDON_ORACLE");
  const std::filesystem::path path = named != nullptr ? named : "../shared/oracle";
  return std::filesystem::exists(path / "MANIFEST.json") ? path : std::filesystem::path{};
}

/// Images of one shape and labels for any data layer.
inline poseidon::source_shapes images(poseidon::shape sample) {
  return [sample = std::move(sample)](const ::caffe::LayerParameter& layer,
                                      const poseidon::spec_position&) {
    const std::int64_t batch = layer.data_param().batch_size();
    poseidon::shape data{batch};
    data.insert(data.end(), sample.begin(), sample.end());
    return std::vector<poseidon::shape>{data, {batch}};
  };
}

inline poseidon::net build(const std::string& text, ::caffe::Phase phase = ::caffe::TRAIN) {
  poseidon::build_options options;
  options.state.phase = phase;
  return poseidon::build_net(poseidon::parse_net(text, "net.prototxt"), options);
}

/// The error of building the text; empty if there is none.
inline std::string mistake(const std::string& text, ::caffe::Phase phase = ::caffe::TRAIN) {
  try {
    (void)build(text, phase);
    return {};
  } catch (const poseidon::spec_error& e) {
    return e.what();
  }
}

/// `layer { name type bottom: top: more }` in one line.
inline std::string layer(const std::string& name, const std::string& type,
                         const std::string& bottom, const std::string& top,
                         const std::string& more = {}) {
  std::string text = "layer { name: \"" + name + "\" type: \"" + type + "\"";
  if (!bottom.empty()) text += " bottom: \"" + bottom + "\"";
  if (!top.empty()) text += " top: \"" + top + "\"";
  return text + " " + more + " }\n";
}

inline std::string input(const std::string& name, const std::vector<int>& shape) {
  std::string dims;
  for (const int extent : shape) dims += "dim: " + std::to_string(extent) + " ";
  return layer(name, "Input", "", name, "input_param { shape { " + dims + "} }");
}

inline const poseidon::net_layer& named(const poseidon::net& n, std::string_view name) {
  for (const auto& l : n.layers)
    if (l.name == name) return l;
  throw std::out_of_range("no layer " + std::string(name));
}

inline poseidon::shape top_of(const poseidon::net& n, const std::string& name,
                              std::size_t top = 0) {
  return n.blobs.at(named(n, name).tops.at(top)).shape;
}

}  // namespace poseidon::test
