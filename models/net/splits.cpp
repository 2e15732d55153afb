// Where several layers take one blob, a Split layer copies it and adds their gradients: insert_splits of
// net_builder.hpp. Afterwards every top has at most one consumer.
#include "models/net/blob_uses.hpp"
#include "models/net/net_builder.hpp"

#include <map>
#include <utility>

namespace poseidon {

namespace {

using top_place = std::pair<int, int>;  ///< layer, top

struct use_count {
  int consumers = 0;  ///< bottoms, and the loss where the top has a weight
  float loss_weight = 0;
  int next_copy = 0;  ///< the copy that the next consumer takes
};

std::string split_name(const std::string& blob, const std::string& layer, int top) {
  return blob + "_" + layer + "_" + std::to_string(top) + "_split";
}

::caffe::LayerParameter split_layer(const ::caffe::LayerParameter& maker, int top,
                                    const use_count& uses) {
  ::caffe::LayerParameter split;
  split.set_name(split_name(maker.top(top), maker.name(), top));
  split.set_type("Split");
  split.add_bottom(maker.top(top));
  for (int copy = 0; copy < uses.consumers; ++copy) {
    split.add_top(split.name() + "_" + std::to_string(copy));
    if (uses.loss_weight != 0) split.add_loss_weight(copy == 0 ? uses.loss_weight : 0);
  }
  return split;
}

}  // namespace

net_file insert_splits(const net_file& file) {
  check_bottoms(file, file);
  const auto& spec = file.spec;
  std::map<std::string, top_place> last_maker;
  std::map<top_place, top_place> maker_of;  ///< by (layer, bottom)
  std::map<top_place, use_count> uses;
  for (int i = 0; i < spec.layer_size(); ++i) {
    const auto& layer = spec.layer(i);
    for (int j = 0; j < layer.bottom_size(); ++j) {
      maker_of[{i, j}] = last_maker.at(layer.bottom(j));
      ++uses[maker_of[{i, j}]].consumers;
    }
    for (int j = 0; j < layer.top_size(); ++j) last_maker[layer.top(j)] = {i, j};
    for (int j = 0; j < std::min(layer.loss_weight_size(), layer.top_size()); ++j) {
      if (layer.loss_weight(j) == 0) continue;
      uses[{i, j}].loss_weight = layer.loss_weight(j);
      ++uses[{i, j}].consumers;
    }
  }
  net_file with{spec, {}, file.directory};
  with.spec.clear_layer();
  for (int i = 0; i < spec.layer_size(); ++i) {
    const auto place = file.layer_places.at(static_cast<std::size_t>(i));
    auto layer = spec.layer(i);
    for (int j = 0; j < layer.bottom_size(); ++j) {
      const auto maker = maker_of.at({i, j});
      auto& use = uses.at(maker);
      if (use.consumers < 2) continue;
      // The loss, if there is one, has taken copy 0.
      const int copy = use.next_copy++ + (use.loss_weight != 0 ? 1 : 0);
      layer.set_bottom(
          j, split_name(layer.bottom(j), spec.layer(maker.first).name(), maker.second) + "_" +
                 std::to_string(copy));
    }
    std::vector<::caffe::LayerParameter> splits;
    for (int j = 0; j < layer.top_size(); ++j) {
      const auto use = uses.find({i, j});
      if (use == uses.end() || use->second.consumers < 2) continue;
      splits.push_back(split_layer(spec.layer(i), j, use->second));
      if (use->second.loss_weight != 0) layer.clear_loss_weight();
    }
    *with.spec.add_layer() = std::move(layer);
    with.layer_places.push_back(place);
    for (auto& split : splits) {
      *with.spec.add_layer() = std::move(split);
      with.layer_places.push_back({place.file, 0});
    }
  }
  return with;
}

}  // namespace poseidon
