#include "models/net/net.hpp"

#include "models/net/layer_rules.hpp"

#include <algorithm>
#include <set>

namespace poseidon {

namespace {
bool has(const std::vector<std::size_t>& blobs, std::size_t blob) {
  return std::find(blobs.begin(), blobs.end(), blob) != blobs.end();
}
}  // namespace

std::optional<std::size_t> producer(const net& n, std::size_t blob, std::size_t before) {
  for (auto layer = std::min(before, n.layers.size()); layer-- > 0;)
    if (has(n.layers[layer].tops, blob)) return layer;
  return std::nullopt;
}

std::size_t writers_of(const net& n, std::size_t blob) {
  return static_cast<std::size_t>(std::count_if(
      n.layers.begin(), n.layers.end(), [&](const net_layer& l) { return has(l.tops, blob); }));
}

std::optional<std::size_t> consumer(const net& n, std::size_t blob, std::size_t after) {
  for (auto layer = after + 1; layer < n.layers.size(); ++layer) {
    if (has(n.layers[layer].bottoms, blob)) return layer;
    if (has(n.layers[layer].tops, blob)) return std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::size_t> starter(const net& n, std::size_t layer) {
  if (!n.layers[layer].bottoms.empty() || is_source(n.layers[layer])) return std::nullopt;
  for (std::size_t l = 0; l < n.layers.size(); ++l)
    if (is_source(n.layers[l])) return l;
  return std::nullopt;
}

::caffe::Phase phase_of(const net& n, const net_layer& layer) {
  return layer.spec.has_phase() ? layer.spec.phase() : n.phase;
}

bool uses_batch_statistics(const net& n, const net_layer& layer) {
  if (layer.type != "BatchNorm") return false;
  const auto& p = layer.spec.batch_norm_param();
  return p.has_use_global_stats() ? !p.use_global_stats() : phase_of(n, layer) == ::caffe::TRAIN;
}

std::vector<bool> resized_blobs(const net& n) {
  std::vector<bool> resized(n.blobs.size());
  for (const net_layer& l : n.layers) {
    const bool reached =
        std::any_of(l.bottoms.begin(), l.bottoms.end(), [&](std::size_t b) { return resized[b]; });
    if (!reached && l.type != "Filter") continue;
    for (const std::size_t t : l.tops) resized[t] = true;
  }
  return resized;
}

std::vector<parameter_place> gradient_writers(const net& n, std::size_t parameter) {
  std::vector<parameter_place> places;
  for (std::size_t l = n.layers.size(); l-- > 0;) {
    const net_layer& layer = n.layers[l];
    for (std::size_t s = layer.parameters.size(); s-- > 0;)
      if (layer.parameters[s] == parameter && layer.needs_backward && layer.learn.at(s))
        places.push_back({l, s});
  }
  return places;
}

std::vector<bool> have_whole_gradients(const net& n) {
  std::vector<std::size_t> users(n.parameters.size()), learners(n.parameters.size());
  for (const net_layer& l : n.layers) {
    std::set<std::size_t> used, learned;
    for (std::size_t s = 0; s < l.parameters.size(); ++s) {
      used.insert(l.parameters[s]);
      if (l.needs_backward && l.learn.at(s)) learned.insert(l.parameters[s]);
    }
    for (const std::size_t p : used) ++users[p];
    for (const std::size_t p : learned) ++learners[p];
  }
  std::vector<bool> whole(n.parameters.size());
  for (std::size_t p = 0; p < whole.size(); ++p)
    whole[p] = users[p] <= 1 || users[p] == learners[p];
  return whole;
}

bool is_source(const net_layer& layer) {
  const auto* type = find_layer_type(layer.type);
  return type != nullptr && type->source;
}

std::vector<std::size_t> first_uses(const net& n) {
  const auto nowhere = n.layers.size();
  std::vector<std::size_t> out(n.parameters.size(), nowhere);
  for (std::size_t layer = 0; layer < n.layers.size(); ++layer)
    for (const auto p : n.layers[layer].parameters) out.at(p) = std::min(out.at(p), layer);
  if (const auto unused = std::find(out.begin(), out.end(), nowhere); unused != out.end())
    throw std::invalid_argument("parameter " + std::to_string(unused - out.begin()) +
                                " is in no layer of the net");
  return out;
}

bool is_learned(const net_parameter& p) {
  return p.lr_mult != 0;
}

bool is_learned(const net& n, std::size_t parameter) {
  return is_learned(n.parameters[parameter]);
}

bool is_updated(const net_parameter& p) {
  return p.average_momentum || is_learned(p);
}

bool is_updated(const net& n, std::size_t parameter) {
  return is_updated(n.parameters[parameter]);
}

bool runs_backward(const net& n, const net_layer& layer) {
  return layer.needs_backward ||
         std::any_of(layer.parameters.begin(), layer.parameters.end(),
                     [&](std::size_t p) { return n.parameters[p].average_momentum.has_value(); });
}

}  // namespace poseidon
