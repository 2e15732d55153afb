#include "models/net/blob_uses.hpp"

#include "models/words.hpp"

#include <algorithm>
#include <map>

namespace poseidon {

namespace {

std::string label(const ::caffe::LayerParameter& layer) {
  return "layer \"" + layer.name() + "\" (" + layer.type() + ")";
}

std::string at_line(const spec_position& place) {
  return place.line > 0 ? " (line " + std::to_string(place.line) + ")" : "";
}

bool makes(const ::caffe::LayerParameter& layer, const std::string& blob) {
  return std::find(layer.top().begin(), layer.top().end(), blob) != layer.top().end();
}

/// Where the blob would come from, had it been written or filtered otherwise.
std::string suggestion(const net_file& file, const net_file& whole, int layer,
                       const std::string& blob, const std::map<std::string, spec_position>& known) {
  for (int i = layer; i < file.spec.layer_size(); ++i)
    if (makes(file.spec.layer(i), blob))
      return " " + label(file.spec.layer(i)) + " makes it further down" +
             at_line(file.layer_places[static_cast<std::size_t>(i)]) + ". Move that layer up.";
  for (int i = 0; i < whole.spec.layer_size(); ++i)
    if (makes(whole.spec.layer(i), blob))
      return " " + label(whole.spec.layer(i)) +
             at_line(whole.layer_places[static_cast<std::size_t>(i)]) +
             " would make it, but its include or exclude rules take it away in phase " +
             ::caffe::Phase_Name(file.spec.state().phase()) + ".";
  std::vector<std::string> names;
  for (const auto& [name, place] : known) names.push_back(name);
  const auto near = nearest_word(blob, names);
  if (near) return " Did you mean \"" + *near + "\"" + at_line(known.at(*near)) + "?";
  return names.empty() ? " No layer stands before it."
                       : " Blobs made so far: " + comma_list(names) + ".";
}

}  // namespace

void check_bottoms(const net_file& file, const net_file& whole) {
  std::map<std::string, spec_position> made;
  for (int i = 0; i < file.spec.layer_size(); ++i) {
    const auto& layer = file.spec.layer(i);
    const auto& place = file.layer_places.at(static_cast<std::size_t>(i));
    for (const auto& bottom : layer.bottom())
      if (made.count(bottom) == 0)
        throw spec_error(place, label(layer) + " takes its bottom \"" + bottom +
                                    "\", which no layer before it produces." +
                                    suggestion(file, whole, i, bottom, made));
    for (int j = 0; j < layer.top_size(); ++j) {
      const auto& top = layer.top(j);
      const bool in_place = j < layer.bottom_size() && layer.bottom(j) == top;
      if (!in_place && made.count(top) != 0)
        throw spec_error(
            place, label(layer) + " makes the top \"" + top + "\", which another layer has made" +
                       at_line(made.at(top)) +
                       ". Give it another name, or take the blob as bottom too, to work in place.");
      made[top] = place;
    }
  }
}

}  // namespace poseidon
